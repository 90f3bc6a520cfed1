import { execFileSync } from 'node:child_process'
import { url as inspectorUrl } from 'node:inspector'
import { setFlagsFromString } from 'node:v8'

/**
 * V8 flags of processes that pass tensors on. Tensors are memory outside of V8's heap, and V8 would mark the whole heap after
 * every 40 MB of them, however few are alive. With the first three flags it counts both together, starts at 128 MB, and marks
 * again after a quarter more. `--no-allocation-site-pretenuring` keeps the objects of requests out of the old space, where all
 * that they refer to would stay until the next full collection. Functions are optimised after 2,000 calls instead of 3,000: the
 * small requests between the 5,000th and the 40,000th of a new process take a quarter less time, earlier ones a third more. The
 * halves for young objects start at 16 MB: after `freeStartMemory` they would stay small and be collected twice as often. Pages
 * that no object has touched are not resident. Measured: README.md of bench/.
 */
export const SERVING_FLAGS = [
  '--external-memory-accounted-in-global-limit',
  '--initial-old-space-size=128',
  '--heap-growing-percent=25',
  '--no-allocation-site-pretenuring',
  '--invocation-count-for-turbofan=2000',
  '--min-semi-space-size=16',
  '--expose-gc',
] as const

/**
 * V8 flags of the operator, whose heap holds objects of Kubernetes. Without them V8 would make two halves of 64 MB for young
 * objects while it reads those objects, and keep the halves.
 */
export const OPERATOR_V8_FLAGS = [
  '--heap-growing-percent=25',
  '--max-semi-space-size=8',
  '--expose-gc',
] as const

/**
 * Frees the memory that the start of a program leaves on V8's heap, 40 MB of an idle process. Loading modules makes the two
 * halves for young objects grow to 16 MB each, and V8 collects the rest only at 128 MB. No effect where V8 does not expose its
 * collector.
 */
export function freeStartMemory(): void {
  // The only flavor that makes the halves for young objects small again. They grow with the load.
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

/** Members of the process that are needed; Node's own `process` has them all. */
export interface RuntimeProcess
  extends Pick<NodeJS.Process, 'argv' | 'argv0' | 'connected' | 'env' | 'execArgv' | 'execPath'> {
  /** Absent on Windows and before Node 22.15. */
  readonly execve?: NodeJS.Process['execve'] | undefined
}

/**
 * Sets V8 flags for this process, however it was started. It belongs in the first lines of a main.ts, before other modules are
 * loaded: the process begins again with the flags, with the same pid, arguments, environment and standard streams. Where it
 * cannot begin again, the flags are set while it runs. Then those for the start of the heap (`--initial-old-space-size`) have no
 * effect.
 *
 * Flags that came with the process win. Flags that this V8 does not know are left out.
 *
 * @param wanted - as on Node's command line.
 */
export function runWithFlags(wanted: readonly string[], source: RuntimeProcess): void {
  const given = new Set(source.execArgv.map(nameOf))
  const missing = wanted.filter((flag) => !given.has(nameOf(flag)))
  const known = missing.length === 0 ? new Set<string>() : knownFlags(source)
  const added = missing.filter((flag) => known.has(nameOf(flag)))
  if (added.length === 0) return
  // A debugger or a parent at the other end of a channel would lose this process.
  if (source.execve !== undefined && inspectorUrl() === undefined && !source.connected) {
    const args = [source.argv0, ...added, ...source.execArgv, ...source.argv.slice(1)]
    source.execve(source.execPath, args, source.env)
  }
  for (const flag of added) setFlagsFromString(flag)
}

/** Returns the name of the flag, which is the same for `--no_heap_growing_percent` and `--heap-growing-percent=25`. */
function nameOf(flag: string): string {
  const [name = ''] = flag.split('=')
  return name.replaceAll('_', '-').replace(/^--(no-?)?/, '')
}

/**
 * Finds the flags that V8 knows. Node has no list of them, refuses to start with an unknown one, and complains where one is set
 * later.
 */
function knownFlags({ execPath, env }: RuntimeProcess): ReadonlySet<string> {
  try {
    const listed = execFileSync(execPath, ['--v8-options'], {
      encoding: 'utf8',
      // It may load files.
      env: { ...env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return new Set([...listed.matchAll(/^ {2}--(\S+) \(/gm)].map(([, name = '']) => name))
  } catch {
    // Where no other process may start, this one runs as Node would without us.
    return new Set()
  }
}
