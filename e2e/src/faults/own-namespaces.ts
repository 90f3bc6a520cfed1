import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'

const WORDS = process.env['TUTTI_NAMESPACES']
const IS_INSIDE = process.env['TUTTI_IS_INSIDE'] === 'true'

/** For tap's `skip`: why a test can have no namespaces of its own here, or false. */
export function withoutNamespaces(): string | false {
  if (WORDS !== undefined) return false
  return process.env['TUTTI_NAMESPACES_MISSING'] ?? 'TUTTI_NAMESPACES is not set'
}

/**
 * Runs a test file once more, in namespaces of its own, where it does its work. With that process the kernel ends everything in
 * them: network, mounts and processes, however it ends.
 *
 * @param file - its `import.meta.url`.
 * @param environments - what its environment has beside this process's: it runs once for each.
 */
export async function inOwnNamespaces(
  t: Test,
  file: string,
  work: () => Promise<unknown>,
  environments: readonly Readonly<Record<string, string>>[] = [{}],
): Promise<void> {
  if (IS_INSIDE) {
    await work()
    return
  }
  const skip = withoutNamespaces()
  const [unshare = '', ...args] = (WORDS ?? '').split(' ')
  const program = [process.execPath, fileURLToPath(file)]
  for (const more of environments) {
    const env = { ...process.env, ...more, TUTTI_IS_INSIDE: 'true' }
    const name = ['in namespaces of its own', ...Object.values(more)].join(', ')
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await t.spawn(unshare, [...args, ...program], { env, skip }, name)
  }
}

/** Runs a program to its end. @throws Error with what it wrote, if it fails. */
export async function command(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, [...args])
  return stdout
}
