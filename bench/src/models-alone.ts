import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Member } from './contest.ts'

const PROGRAM = fileURLToPath(new URL('../python/models_alone.py', import.meta.url))

/**
 * Starts the Python models of a chain without a server, a process for each: what they cost by themselves.
 *
 * @param folders - of the models, in their order.
 * @param shape - of the first one's input, UINT8.
 * @throws Error if the program ends.
 */
export async function startModelsAlone(
  opened: AsyncDisposableStack,
  o: {
    readonly python: string
    readonly folders: readonly string[]
    readonly shape: readonly number[]
  },
): Promise<Member> {
  const args = [PROGRAM, ...o.folders, JSON.stringify(o.shape)]
  const child = spawn(o.python, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  opened.defer(async () => {
    child.stdin.end()
    if (child.exitCode === null) await once(child, 'exit')
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const nextLine = async (): Promise<string> => {
    const { value, done } = await lines.next()
    if (done === true) throw new Error(`${PROGRAM} ended`)
    return value
  }
  await nextLine()
  return {
    name: 'models alone',
    pid: child.pid ?? Number.NaN,
    grpcPort: Number.NaN,
    httpPort: Number.NaN,
    run: async ({ inFlight, requests }) => {
      const began = performance.now()
      child.stdin.write(`${inFlight} ${requests}\n`)
      const latenciesMs: readonly number[] = JSON.parse(await nextLine())
      return { perSecond: (requests / (performance.now() - began)) * 1000, latenciesMs }
    },
  }
}
