import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import type { Test } from 'tap'

/** The root of the checkout, for paths that tests hand to processes. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** That of the checkout, which its images and its chart have too. */
export const { version: VERSION }: { readonly version: string } = JSON.parse(
  readFileSync(`${ROOT}package.json`, 'utf8'),
)

/** The built command, for `node`. */
const TUTTI = `${ROOT}services/cli/dist/main.js`

/** Description of the server that a test wants. */
export interface ServeRequest extends Pick<StartOptions, 'env' | 'within'> {
  /** Folders, from the root of the checkout or absolute. */
  readonly repositories: readonly string[]
  readonly flags?: readonly string[]
}

/** A served repository as a client sees it: addresses, nothing else. */
export interface Target {
  readonly grpcPort: number
  readonly httpPort: number
  readonly metricsPort: number
}

/** A `tutti serve` that this test started. */
export interface Serving extends Target {
  readonly process: StartedProcess
}

/** Starts `tutti serve` on free ports of the loopback, and waits until it serves. It ends with the test, however the test ends. */
export async function serve(t: Test, o: ServeRequest): Promise<Serving> {
  const { serving } = await startTutti(serveArguments(o), o)
  // Tests that care about the end of the server end it themselves; here it must only be gone.
  t.teardown(() => serving.process.stop('SIGKILL'))
  return serving
}

/** Runs `tutti serve`, which is expected to refuse its start. */
export function refusedServe(o: Omit<ServeRequest, keyof StartOptions>): Promise<Ended> {
  return runTutti(serveArguments(o))
}

function serveArguments(o: Omit<ServeRequest, keyof StartOptions>): readonly string[] {
  const repositories = o.repositories.map((path) => `--model-repository=${resolve(ROOT, path)}`)
  return ['serve', ...repositories, ...LOOPBACK, ...(o.flags ?? [])]
}

/** How a command ended, and what it wrote. */
export interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs a program to its end, however that is. */
export function runProgram(
  program: string,
  args: readonly string[],
  o: { readonly env?: NodeJS.ProcessEnv; readonly input?: string; readonly cwd?: string } = {},
): Promise<Ended> {
  const { input = '', ...rest } = o
  return new Promise((settle) => {
    const options = { ...rest, maxBuffer: 64 * 1024 * 1024 }
    const child = execFile(program, args, options, (error, out, err) => {
      const code = typeof error?.code === 'number' ? error.code : 1
      settle({ code: error === null ? 0 : code, out, err: err || (error?.message ?? '') })
    })
    // A program that ends before it has read all breaks the pipe: its code says how it ended.
    child.stdin?.once('error', () => {})
    child.stdin?.end(input)
  })
}

/** Runs a command of `tutti` to its end. */
export function runTutti(args: readonly string[], input = ''): Promise<Ended> {
  return runProgram(process.execPath, [TUTTI, ...args], { input })
}

/** Flags with which a command listens on free ports of the loopback. */
export const LOOPBACK: readonly string[] = ['grpc', 'http', 'metrics'].flatMap((name) => [
  `--${name}-address=127.0.0.1`,
  `--${name}-port=0`,
])

/** How a command of `tutti` is started. */
export interface StartOptions {
  /** Variables that the environment has beside this process's. */
  readonly env?: Readonly<Record<string, string>>
  /** Where it runs; default the root of the checkout. */
  readonly cwd?: string
  /** `tutti` of another build, for `node`. */
  readonly program?: string
  /** Words before the command, such as those that put it into a namespace; they must become the command. */
  readonly within?: readonly string[]
}

/** Starts a command of `tutti`. @returns also what it says of itself when it is ready. */
export async function startTutti(
  args: readonly string[],
  { cwd = ROOT, env = {}, program: tutti = TUTTI, within = [] }: StartOptions = {},
): Promise<{ readonly serving: Serving; readonly ready: Record<string, unknown> }> {
  const isReady = (line: string): boolean => parseLine(line)['message'] === 'server ready'
  const [program = '', ...rest] = [...within, process.execPath, tutti, ...args]
  const started = await startProcess(program, rest, {
    cwd,
    env: { ...process.env, ...env },
    readyWhen: isReady,
    readyTimeoutMs: 120_000,
  })
  const ready = parseLine(started.lines.find(isReady) ?? '')
  const port = (name: string): number => Number(ready[`${name}Port`])
  const ports = { grpcPort: port('grpc'), httpPort: port('http'), metricsPort: port('metrics') }
  return { serving: { process: started, ...ports }, ready }
}

/** A JSON line as an object; {} for anything else. */
export function parseLine(line: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(line)
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  } catch {
    return {}
  }
}
