import type { ServedModel } from '@tutti/api'
import {
  BUILTIN_HOST,
  BUILTIN_HOST_CONFIG,
  BUILTIN_HOST_VERSION,
  BUILTIN_REVISION,
} from '@tutti/builtins'
import { raceSignal } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type ExecuteOptions,
  executedBefore,
  type InferRequest,
  type ModelTarget,
  type ResponseSink,
} from '@tutti/tensor'
import type { BuiltinExecutor } from '../execution/scheduler-parts.ts'
import { pinKey } from '../load/model-table.ts'
import { type BuiltinSettings, type LoadedBuiltin, loadBuiltin } from './load-builtin.ts'

/** Default of `maxLoaded`. Most take some kilobytes, but one that computes in JavaScript has two threads. */
const MAX_LOADED = 128

/** The place of a model version, whose files built-ins read. */
interface Place {
  readonly directories: readonly string[]
}

export interface BuiltinStepsOptions {
  readonly settings: BuiltinSettings
  /** True if requests to BUILTIN_HOST are taken, and not only those beside models of this process. */
  readonly areOffered: boolean
  /** Built-ins that stay loaded although no request is in flight; 128 if absent. */
  readonly maxLoaded?: number
  /** Finds a model version that is served, or was. @throws ServeError MODEL_NOT_FOUND, MODEL_NOT_READY or REVISION_GONE. */
  findPinned(target: ModelTarget): Place
}

interface Entry {
  readonly target: ModelTarget
  readonly text: string
  readonly ready: Promise<LoadedBuiltin>
  /** Present once it is loaded. */
  loaded?: LoadedBuiltin
  /** Requests that were given to it and are not answered. */
  requests: number
}

/** The description of the model that stands for the built-ins of a process. */
export const SERVED_BUILTINS: ServedModel = {
  name: BUILTIN_HOST,
  config: BUILTIN_HOST_CONFIG,
  labels: {},
  versions: [
    { version: BUILTIN_HOST_VERSION, revision: BUILTIN_REVISION, state: 'READY', reason: '' },
  ],
  reason: '',
}

/**
 * Executes the built-in steps of ensembles. Each is loaded with its first request, because which steps there are is not said in
 * advance, and stays as long as there is room.
 */
export class BuiltinSteps implements BuiltinExecutor {
  readonly areOffered: boolean
  readonly #options: BuiltinStepsOptions
  /** By target, then by text: texts may be long, and one that was seen before has its hash. */
  readonly #byTarget = new Map<string, Map<string, Entry>>()
  /** The one that was used last is the last. */
  readonly #entries = new Set<Entry>()
  /** Those that take no new requests, until they are closed. */
  readonly #closing = new Set<Promise<void>>()
  #isStopping = false

  constructor(o: BuiltinStepsOptions) {
    this.#options = o
    this.areOffered = o.areOffered
  }

  /** Executes a request for a built-in, as an Executor. @param text - of the step. */
  execute(target: ModelTarget, text: string, { request, sink, o }: Call): void {
    try {
      const entry = this.#entryOf(target, text)
      entry.requests += 1
      const counted = countEnd(sink, () => this.#ended(entry))
      if (entry.loaded !== undefined) return this.#run(entry.loaded, { request, sink: counted, o })
      raceSignal(entry.ready, o.signal).then(
        (loaded) => this.#run(loaded, { request, sink: counted, o }),
        (error: unknown) => counted.fail(this.#locateLoad(error, target), 'no'),
      )
    } catch (error) {
      const failure = this.#locate(error, target)
      sink.fail(failure, executedBefore(failure))
    }
  }

  #run({ check, scheduler }: LoadedBuiltin, { request, sink, o }: Call): void {
    try {
      scheduler.execute(check(request), sink, o)
    } catch (error) {
      const failure = ServeError.from(error)
      sink.fail(failure, executedBefore(failure))
    }
  }

  #locate(error: unknown, { model, version }: ModelTarget): ServeError {
    const { replica } = this.#options.settings
    return ServeError.from(error).withDetails({ model, version: String(version), replica })
  }

  /** Names the model whose files a built-in may lack. */
  #locateLoad(error: unknown, target: ModelTarget): ServeError {
    const located = this.#locate(error, target)
    const isOfFiles = located.reason === 'MODEL_LOAD_FAILED' && target.model !== BUILTIN_HOST
    return isOfFiles ? located.withPrefix(`model '${target.model}', `) : located
  }

  #entryOf(target: ModelTarget, text: string): Entry {
    if (this.#isStopping) throw new ServeError('SERVER_STOPPING', 'the step stops')
    const place = this.#placeOf(target)
    const known = this.#byTarget.get(pinKey(target))?.get(text)
    if (known !== undefined) {
      this.#entries.delete(known)
      this.#entries.add(known)
      return known
    }
    const ready = loadBuiltin(text, { ...this.#options.settings, ...place })
    const entry: Entry = { target, text, ready, requests: 0 }
    this.#add(entry)
    void this.#await(entry)
    this.#closeSome()
    return entry
  }

  #add(entry: Entry): void {
    const key = pinKey(entry.target)
    const beside = this.#byTarget.get(key) ?? new Map<string, Entry>()
    this.#byTarget.set(key, beside)
    beside.set(entry.text, entry)
    this.#entries.add(entry)
  }

  #remove(entry: Entry): void {
    if (!this.#entries.delete(entry)) return
    const key = pinKey(entry.target)
    const beside = this.#byTarget.get(key)
    beside?.delete(entry.text)
    if (beside?.size === 0) this.#byTarget.delete(key)
  }

  async #await(entry: Entry): Promise<void> {
    try {
      entry.loaded = await entry.ready
    } catch {
      // The next request tries again: a file may be there by then.
      this.#remove(entry)
    }
  }

  #placeOf(target: ModelTarget): Place {
    if (target.model !== BUILTIN_HOST) return this.#options.findPinned(target)
    if (this.areOffered) return { directories: [] }
    const text = 'this step does not run built-ins (--builtins)'
    throw new ServeError('MODEL_NOT_FOUND', text)
  }

  #ended(entry: Entry): void {
    entry.requests -= 1
    this.#closeSome()
  }

  /** Closes those that were not used for the longest time, beyond the room for them. */
  #closeSome(): void {
    const { maxLoaded = MAX_LOADED } = this.#options
    if (this.#entries.size <= maxLoaded) return
    for (const entry of this.#entries) {
      if (this.#entries.size <= maxLoaded) return
      if (entry.requests === 0 && entry.loaded !== undefined) this.#close(entry)
    }
  }

  /** Closes those beside model versions that no request can pin. */
  sweep(): void {
    for (const entry of this.#entries) {
      if (entry.target.model === BUILTIN_HOST) continue
      try {
        this.#options.findPinned(entry.target)
      } catch {
        this.#close(entry)
      }
    }
  }

  #close(entry: Entry): void {
    this.#remove(entry)
    const closing = closeLoaded(entry.ready).finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  /** The built-ins that are loaded, with the model that each runs beside. */
  get loaded(): readonly (LoadedBuiltin & { readonly target: ModelTarget })[] {
    return [...this.#entries].flatMap(({ loaded, target }) =>
      loaded === undefined ? [] : { ...loaded, target },
    )
  }

  /** Refuses new requests. @returns resolves when all accepted ones are answered. */
  async drain(): Promise<void> {
    this.#isStopping = true
    const all = [...this.#entries].map(async ({ ready }) => (await ready).scheduler.drain())
    await Promise.allSettled(all)
  }

  /** Fails what waits and what runs. */
  stop(): void {
    this.#isStopping = true
    for (const { scheduler } of this.loaded) scheduler.stop()
  }

  async close(): Promise<void> {
    this.stop()
    for (const entry of this.#entries) this.#close(entry)
    while (this.#closing.size > 0) await Promise.all(this.#closing)
  }
}

interface Call {
  readonly request: InferRequest
  readonly sink: ResponseSink
  readonly o: ExecuteOptions
}

/** Closes a built-in once its requests are answered. One that did not load needs nothing. */
async function closeLoaded(ready: Promise<LoadedBuiltin>): Promise<void> {
  const entry = await ready.catch(() => undefined)
  await entry?.scheduler.drain()
  await entry?.loaded.close()
}

/** Calls `ended` before the sink gets the end. */
function countEnd(sink: ResponseSink, ended: () => void): ResponseSink {
  return {
    send: (response) => {
      if (response.final) ended()
      sink.send(response)
    },
    fail: (error, executed, times) => {
      ended()
      sink.fail(error, executed, times)
    },
    ready: () => sink.ready?.(),
  }
}
