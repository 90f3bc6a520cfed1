// oxlint-disable typescript/no-unsafe-type-assertion -- this file is the adapter of the inspector's protocol
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { HeapSpaceInfo } from 'node:v8'
import type { StartedProcess } from '@tutti/chassis/testing'
import { ROOT } from '../serving.ts'

/** The functions of one thread that have run, by file URL and name and place. */
export type Executed = ReadonlyMap<string, ReadonlySet<string>>

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

interface ScriptCoverage {
  readonly url: string
  readonly functions: readonly {
    readonly functionName: string
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[]
  }[]
}

type Send = (method: string, params?: object) => Promise<Record<string, unknown>>

/** Opens the inspector of a process that was started with `--inspect`. */
async function openInspector({ lines }: StartedProcess): Promise<WebSocket> {
  const [, url = ''] = /Debugger listening on (ws:\S+)/.exec(lines.join('\n')) ?? []
  const socket = new WebSocket(url)
  await once(socket, 'open')
  return socket
}

/** Bytes of the main thread's heap that are in use. */
export interface Heap {
  /** All that the program holds. */
  readonly objectBytes: number
  /** Bytes that V8 has made of its functions. Grows for hours, ever more slowly: a function that runs often is compiled better. */
  readonly codeBytes: number
}

const SPACES = `JSON.stringify(process.getBuiltinModule('v8').getHeapSpaceStatistics())`
/** Bytecode and machine code are in spaces of their own. */
const OF_CODE = /^(?:code|trusted)_/

/**
 * Has a process that was started with `--inspect` give back all memory that nothing refers to. Left to itself the collector does so
 * when it pays, which moves what is resident by a third of it from hour to hour.
 *
 * @returns what is in use then.
 */
export async function collectGarbage(started: StartedProcess): Promise<Heap> {
  const socket = await openInspector(started)
  const main = new Session((text) => socket.send(text))
  socket.addEventListener('message', ({ data }) => main.take(JSON.parse(String(data)) as Message))
  await main.send('HeapProfiler.collectGarbage')
  const { result } = await main.send('Runtime.evaluate', { expression: SPACES })
  socket.close()
  const { value } = result as { readonly value: string }
  const spaces = JSON.parse(value) as readonly HeapSpaceInfo[]
  const sumOf = (isOfCode: boolean): number =>
    spaces
      .filter(({ space_name: name }) => OF_CODE.test(name) === isOfCode)
      .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0)
  return { objectBytes: sumOf(false), codeBytes: sumOf(true) }
}

/**
 * Counts, from now on, which functions run in a process that was started with `--inspect`, and in its worker threads: V8's precise
 * coverage, which does not miss what is optimised.
 */
export async function inspectProcess(started: StartedProcess) {
  const socket = await openInspector(started)
  const threads = new Map<string, Session>()
  const main = new Session((text) => socket.send(text))
  threads.set('', main)
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message
    main.take(message)
    const { sessionId, message: inner } = message.params ?? {}
    if (message.method === 'NodeWorker.receivedMessageFromWorker') {
      threads.get(String(sessionId))?.take(JSON.parse(String(inner)) as Message)
    }
    if (message.method === 'NodeWorker.attachedToWorker') {
      const worker = new Session((text) => {
        void main.send('NodeWorker.sendMessageToWorker', { sessionId, message: text })
      })
      threads.set(String(sessionId), worker)
    }
  })
  await main.send('NodeWorker.enable', { waitForDebuggerOnStart: false })
  const sends = [...threads.values()].map((thread): Send => thread.send)
  await Promise.all(sends.map(startCounting))
  return {
    /** Counts what has run since the last call, in all threads. */
    executed: async (): Promise<Executed> => merge(await Promise.all(sends.map(takeCounts))),
    close: (): void => socket.close(),
  }
}

/** One thread's side of the protocol: numbers its calls, and finds their answers. */
class Session {
  readonly #write: (text: string) => void
  readonly #calls = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  #last = 0

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  readonly send: Send = (method, params = {}) => {
    const id = ++this.#last
    const call = Promise.withResolvers<Record<string, unknown>>()
    this.#calls.set(id, call)
    this.#write(JSON.stringify({ id, method, params }))
    return call.promise
  }

  take({ id, result, error }: Message): void {
    const call = id === undefined ? undefined : this.#calls.get(id)
    if (call === undefined || id === undefined) return
    this.#calls.delete(id)
    if (error === undefined) call.resolve(result ?? {})
    else call.reject(new Error(error.message))
  }
}

async function startCounting(send: Send): Promise<void> {
  await send('Profiler.enable')
  await send('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
}

async function takeCounts(send: Send): Promise<readonly ScriptCoverage[]> {
  const { result } = (await send('Profiler.takePreciseCoverage')) as { result: ScriptCoverage[] }
  return result
}

function merge(threads: readonly (readonly ScriptCoverage[])[]): Executed {
  const executed = new Map<string, Set<string>>()
  for (const { url, functions } of threads.flat()) {
    for (const { functionName, ranges } of functions) {
      const [whole] = ranges
      if (whole === undefined || whole.count === 0) continue
      const ran = executed.get(url) ?? new Set()
      executed.set(url, ran.add(`${functionName}@${whole.startOffset}`))
    }
  }
  return executed
}

/** Libraries. The framing of HTTP/2 is one: it knows nothing of calls and models, and stands where Node's own stood. */
const BELOW_THE_PATH = /\/node_modules\/|\/services\/http\//

/** The functions of `now` that are not in `idle`, of files of the checkout: their source files, relative to its root. */
export function sourcesOf(now: Executed, idle: Executed): readonly string[] {
  const files = new Set<string>()
  for (const [url, functions] of now) {
    if (!url.startsWith('file://')) continue
    const path = fileURLToPath(url)
    if (!path.startsWith(ROOT) || BELOW_THE_PATH.test(path)) continue
    const before = idle.get(url)
    if ([...functions].every((name) => before?.has(name))) continue
    files.add(path.slice(ROOT.length).replace('/dist/', '/src/').replace(/\.js$/, '.ts'))
  }
  return [...files].toSorted()
}
