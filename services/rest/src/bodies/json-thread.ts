import { Worker } from 'node:worker_threads'
import { type Clock, raceSignal } from '@tutti/chassis'
import { bug, type CancelSignal, ServeError } from '@tutti/errors'
import type { JsonNeeds } from '@tutti/protocol'
import type { Admission } from '@tutti/serving'
import {
  BODY_PARSERS,
  type BodyKind,
  type BodySource,
  jsonBytes,
  type ParsedBodies,
} from './body-parsers.ts'
import { JsonQueue } from './json-queue.ts'

/** Most bytes of JSON that the main thread parses, which takes some milliseconds. Larger JSON goes to the JSON thread. */
export const MAX_LOOP_JSON_BYTES = 256 * 1024
/** Bytes of memory that the thread may keep between two bodies. After a body that takes more, the thread ends and frees all. */
export const JSON_REST_BYTES = 64 * 2 ** 20
/** Memory to parse one body, counted in the admission meanwhile. */
const MAX_HEAP_BYTES = 768 * 2 ** 20

export interface JsonBounds {
  /** Most values (objects, arrays and their members) in a body with more than 256 KiB of JSON. */
  readonly maxJsonValues: number
  /** Most processor time to parse a body with more than 256 KiB of JSON. */
  readonly jsonTimeoutMs: number
}

export const JSON_DEFAULTS: JsonBounds = { maxJsonValues: 2 ** 23, jsonTimeoutMs: 5000 }

/** A body that is sent to the thread. */
export interface BodyJob<K extends BodyKind = BodyKind> {
  readonly kind: K
  readonly source: Omit<BodySource, 'config'>
}

/** An answer of the thread about a body: first `needs`, its size; then `parsed`, its contents, or `refusal`. */
export interface BodyAnswer<K extends BodyKind = BodyKind> {
  readonly needs?: JsonNeeds
  readonly parsed?: ParsedBodies[K]
  readonly refusal?: Pick<ServeError, 'reason' | 'code' | 'message' | 'details'>
}

/** The caller whose body is parsed. */
export interface JsonCaller {
  readonly signal: CancelSignal
  /** The name of its connection. */
  readonly connection: string
  /** The admission that counts the memory of parsing. */
  readonly admission: Admission
}

// The thread's module is not imported, so its name is not rewritten when this one is compiled.
const THREAD_MODULE = new URL(
  `./json-worker.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`,
  import.meta.url,
)

/** Parses bodies: small ones at once, large ones on one thread, which starts with the first of them. */
export class JsonThread {
  readonly #options: JsonBounds & { readonly clock: Pick<Clock, 'now' | 'setTimer'> }
  readonly #queue = new JsonQueue()
  #worker: Worker | undefined

  constructor(o: JsonBounds & { readonly clock: Pick<Clock, 'now' | 'setTimer'> }) {
    this.#options = o
  }

  /**
   * Parses a body. The caller must not use the body afterwards: the memory of a large one moves to the thread. A body that waits
   * stays charged to its request.
   *
   * @throws ServeError as the parser of the kind does, MESSAGE_TOO_LARGE beyond the bounds, OVERLOADED, or the signal's reason.
   */
  parse<K extends BodyKind>(
    kind: K,
    source: BodySource,
    caller: JsonCaller,
  ): ParsedBodies[K] | Promise<ParsedBodies[K]> {
    const { signal, connection } = caller
    if (signal.aborted) throw signal.reason
    const bytes = jsonBytes(source)
    if (bytes <= MAX_LOOP_JSON_BYTES) return BODY_PARSERS[kind](source)
    const parsed = this.#queue.run({ connection, bytes, signal }, () =>
      this.#ask({ kind, source: withoutConfig(source) }, caller),
    )
    return raceSignal(parsed, signal)
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  async #ask<K extends BodyKind>(
    job: BodyJob<K>,
    { admission }: JsonCaller,
  ): Promise<ParsedBodies[K]> {
    const { byteLength } = job.source.body
    const ticket = admission.open()
    // Its bytes wait for the thread.
    ticket.waitForClient(false)
    const worker = (this.#worker ??= this.#start())
    const late = Promise.withResolvers<never>()
    const stopTimer = this.#whenLate(worker, () => {
      this.#end(worker)
      late.reject(this.#tooSlow(byteLength))
    })
    try {
      const { needs } = await Promise.race([late.promise, tell<K>(worker, job, byteLength)])
      if (needs === undefined) throw bug('the thread has not said what the body takes')
      this.#check(needs)
      ticket.charge(needs.heapBytes)
      const answer = await Promise.race([late.promise, tell<K>(worker, 'parse', byteLength)])
      if (needs.heapBytes > JSON_REST_BYTES) this.#end(worker)
      return resultOf(answer)
    } catch (error) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
      worker.postMessage('drop')
      throw error
    } finally {
      stopTimer()
      ticket.close()
    }
  }

  /** Looks at the thread's processor time: on a machine with much else to do, parsing takes longer and harms no others. */
  #whenLate(worker: Worker, onLate: () => void): () => void {
    const { clock, jsonTimeoutMs } = this.#options
    const before = usedMs(worker)
    let stopTimer: () => void
    let isOver = false
    const look = async (): Promise<void> => {
      const leftMs = jsonTimeoutMs - ((await usedMs(worker)) - (await before))
      if (isOver) return
      if (leftMs <= 0) onLate()
      else stopTimer = clock.setTimer(Math.ceil(leftMs), () => void look())
    }
    stopTimer = clock.setTimer(jsonTimeoutMs, () => void look())
    return () => {
      isOver = true
      stopTimer()
    }
  }

  /** @throws ServeError MESSAGE_TOO_LARGE */
  #check({ values, heapBytes }: JsonNeeds): void {
    const { maxJsonValues } = this.#options
    if (values > maxJsonValues) {
      const text = `a JSON document holds ${values} values, want at most ${maxJsonValues} (--http-max-json-values); send tensors as binary data`
      throw new ServeError('MESSAGE_TOO_LARGE', text)
    }
    if (heapBytes <= MAX_HEAP_BYTES) return
    const text = `a JSON document takes up to ${heapBytes} bytes of memory, want at most ${MAX_HEAP_BYTES}; send tensors as binary data`
    throw new ServeError('MESSAGE_TOO_LARGE', text)
  }

  #tooSlow(bytes: number): ServeError {
    const { jsonTimeoutMs } = this.#options
    const text = `a JSON document of ${bytes} bytes takes more than ${jsonTimeoutMs} ms of processor time to parse (--http-json-timeout-secs); send tensors as binary data`
    return new ServeError('MESSAGE_TOO_LARGE', text)
  }

  #start(): Worker {
    const resourceLimits = { maxOldGenerationSizeMb: (MAX_HEAP_BYTES + JSON_REST_BYTES) / 2 ** 20 }
    const worker = new Worker(THREAD_MODULE, { execArgv: [], resourceLimits })
    worker.on('error', () => this.#forget(worker))
    worker.on('exit', () => this.#forget(worker))
    worker.unref()
    return worker
  }

  #end(worker: Worker): void {
    this.#forget(worker)
    void worker.terminate()
  }

  #forget(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined
  }
}

/** Processor time of a thread since it began; 0 before that. */
async function usedMs(worker: Worker): Promise<number> {
  try {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000
  } catch {
    // It has not begun, or has ended.
    return 0
  }
}

/** Sends a body, whose memory goes along, or a word, and waits for the answer. */
function tell<K extends BodyKind>(
  worker: Worker,
  message: BodyJob<K> | 'parse',
  bodyBytes: number,
): Promise<BodyAnswer<K>> {
  const { promise, resolve, reject } = Promise.withResolvers<BodyAnswer<K>>()
  const onError = (error: Error): void => reject(toRefusal(error, bodyBytes))
  const onExit = (): void => reject(new ServeError('SERVER_STOPPING', 'Server exiting'))
  worker.once('message', resolve).once('error', onError).once('exit', onExit)
  const buffer = typeof message === 'string' ? undefined : message.source.body.buffer
  worker.postMessage(message, buffer instanceof ArrayBuffer ? [buffer] : [])
  return promise.finally(() => {
    worker.off('message', resolve).off('error', onError).off('exit', onExit)
  })
}

function resultOf<K extends BodyKind>({ parsed, refusal }: BodyAnswer<K>): ParsedBodies[K] {
  if (refusal !== undefined) throw new ServeError(refusal.reason, refusal.message, refusal)
  if (parsed === undefined) throw bug('the thread has answered nothing')
  return parsed
}

/** A source to send. Its body is alone in its memory, which it need not fill: no long one shares that with others. */
function withoutConfig({ body, headerLength, modelName = '', inputs = [] }: BodySource) {
  return { headerLength, modelName, inputs, body }
}

function toRefusal(cause: Error, bytes: number): ServeError {
  if (!('code' in cause) || cause.code !== 'ERR_WORKER_OUT_OF_MEMORY') return ServeError.from(cause)
  const text = `a JSON document of ${bytes} bytes takes more memory than this server has for it; send tensors as binary data`
  return new ServeError('MESSAGE_TOO_LARGE', text, { cause })
}
