import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** The flag that names the repository that the demo serves. */
export const REPOSITORY = '--model-repository=model_repository'

/**
 * Starts a program of which one line says that it is ready.
 *
 * @param {(line: string) => object | undefined} readReady - what the line says; undefined for any other line.
 * @param {'stdout' | 'stderr'} from - where the line comes.
 * @returns {Promise<{ ready: object, stop: () => Promise<number>, exited: Promise<number> }>} `stop` sends SIGTERM and waits.
 */
export async function startProgram(command, args, readReady, from = 'stdout') {
  const stdio = from === 'stdout' ? ['ignore', 'pipe', 'inherit'] : ['ignore', 'ignore', 'pipe']
  // In a group of its own: Ctrl-C is for the demo, which ends everything in order.
  const child = spawn(command, args, { stdio, detached: true })
  const exited = new Promise((resolve, reject) => {
    child.once('exit', (code) => resolve(code ?? 1))
    child.once('error', reject)
  })
  const stop = () => {
    child.kill('SIGTERM')
    return exited
  }
  for await (const line of createInterface({ input: child[from] })) {
    const ready = readReady(line)
    if (ready === undefined) continue
    child[from].resume()
    return { ready, stop, exited }
  }
  throw new Error(`${command} ended before it was ready (exit code ${await exited})`)
}

/** Starts a command of `tutti`; `ready` has the ports. Shows its warnings and errors. */
export function startTutti(args) {
  return startProgram(process.execPath, ['services/cli/dist/main.js', ...args], (line) => {
    const entry = parseLine(line)
    if (entry.level === 'warn' || entry.level === 'error') console.error(line)
    return entry.message === 'server ready' ? entry : undefined
  })
}

/**
 * Starts `tutti serve` with the ensembles of systems; other models of the repository can be loaded by clients.
 *
 * @param {readonly { ensemble: string }[]} systems
 * @param {{ python?: string, keep: boolean }} o - `keep` takes the usual ports, which others can know.
 * @returns {Promise<{ servers: readonly object[], stop: () => Promise<void>, exited: Promise<unknown> }>}
 */
export async function startServer(systems, { python, keep }) {
  const { ready, stop, exited } = await startTutti([
    'serve',
    REPOSITORY,
    '--model-control-mode=explicit',
    ...systems.map(({ ensemble }) => `--load-model=${ensemble}`),
    ...pythonFlags(python),
    ...portFlags(keep ? 8000 : undefined),
  ])
  return { servers: [ready], stop, exited }
}

/**
 * Flags with which a server listens on free ports of the loopback interface, or on all interfaces from `firstPort` on.
 *
 * @param {number | undefined} firstPort - of REST; gRPC and metrics follow.
 */
export function portFlags(firstPort) {
  return ['http', 'grpc', 'metrics'].flatMap((name, i) =>
    firstPort === undefined
      ? [`--${name}-address=127.0.0.1`, `--${name}-port=0`]
      : [`--${name}-port=${firstPort + i}`],
  )
}

/** Flags for serving Python models; none if there is no Python for them. */
export function pythonFlags(python) {
  return python === undefined ? [] : [`--backend-config=python,interpreter=${python}`]
}

function parseLine(line) {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}
