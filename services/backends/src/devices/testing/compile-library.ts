import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'

const run = promisify(execFile)

/** Why no library can be compiled here, for `skip`. */
export const withoutCompiler: false | string = await run('cc', ['--version']).then(
  () => false as const,
  () => 'there is no C compiler (cc)',
)

/** A library with the names of a driver's, whose answers the C text makes. @returns its path. */
export async function compileLibrary(
  t: Test,
  text: string,
  flags: readonly string[] = [],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-driver-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [source, library] = [join(folder, 'driver.c'), join(folder, 'libdriver.so.1')]
  await writeFile(source, text)
  await run('cc', ['-shared', '-fPIC', ...flags, '-o', library, source])
  return library
}
