import { Worker } from 'node:worker_threads'
import { raceSignal } from '@tutti/chassis'
import { bug, type CancelSignal, ServeError } from '@tutti/errors'
import {
  BODY_PARSERS,
  type BodyKind,
  type BodySource,
  jsonBytes,
  type ParsedBodies,
} from './body-parsers.ts'

/** Larger JSON is parsed by the thread: this much takes the loop some milliseconds, 64 MiB would take seconds. */
export const MAX_LOOP_JSON_BYTES = 256 * 1024
/** Of the thread's heap: 64 MiB of `1,` become 32 Mi elements of 8 bytes, some of them twice. */
const MAX_HEAP_MIB = 1024

/** What the thread is sent. */
export interface BodyJob<K extends BodyKind = BodyKind> {
  readonly kind: K
  readonly source: Omit<BodySource, 'config'>
}

/** What it answers. */
export interface BodyAnswer<K extends BodyKind = BodyKind> {
  readonly parsed?: ParsedBodies[K]
  readonly refusal?: Pick<ServeError, 'reason' | 'code' | 'message' | 'details'>
}

// The thread's module is not imported, so its name is not rewritten when this one is compiled.
const THREAD_MODULE = new URL(
  `./json-worker.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`,
  import.meta.url,
)

/** Parses bodies: small ones at once, large ones on one thread, which starts with the first of them. */
export class JsonThread {
  #worker: Worker | undefined
  /** Resolves when all that was asked so far is answered. */
  #turn: Promise<unknown> = Promise.resolve()

  /**
   * Parses a body, which is gone after that: the memory of a large one goes to the thread. Bodies that wait here stay charged to their requests.
   *
   * @throws ServeError as the parser of the kind does, MESSAGE_TOO_LARGE if the thread's memory is not enough, or the signal's reason.
   */
  parse<K extends BodyKind>(
    kind: K,
    source: BodySource,
    signal: CancelSignal,
  ): ParsedBodies[K] | Promise<ParsedBodies[K]> {
    if (signal.aborted) throw signal.reason
    if (jsonBytes(source) <= MAX_LOOP_JSON_BYTES) return BODY_PARSERS[kind](source)
    return raceSignal(this.#parseElsewhere(kind, source, signal), signal)
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  async #parseElsewhere<K extends BodyKind>(
    kind: K,
    source: BodySource,
    signal: CancelSignal,
  ): Promise<ParsedBodies[K]> {
    const answer = this.#turn.then(() => {
      if (signal.aborted) throw signal.reason
      return this.#ask({ kind, source: withoutConfig(source) })
    })
    this.#turn = answer.catch(() => {
      // Whoever asked hears of it.
    })
    const { parsed, refusal } = await answer
    if (refusal !== undefined) throw new ServeError(refusal.reason, refusal.message, refusal)
    if (parsed === undefined) throw bug('the thread has answered nothing')
    return parsed
  }

  #ask<K extends BodyKind>(job: BodyJob<K>): Promise<BodyAnswer<K>> {
    const worker = (this.#worker ??= this.#start())
    const { promise, resolve, reject } = Promise.withResolvers<BodyAnswer<K>>()
    const onError = (error: Error): void => reject(toRefusal(error, job.source.body.byteLength))
    const onExit = (): void => reject(new ServeError('SERVER_STOPPING', 'Server exiting'))
    worker.once('message', resolve).once('error', onError).once('exit', onExit)
    const { body } = job.source
    worker.postMessage(job, body.buffer instanceof ArrayBuffer ? [body.buffer] : [])
    return promise.finally(() => {
      worker.off('message', resolve).off('error', onError).off('exit', onExit)
    })
  }

  #start(): Worker {
    const resourceLimits = { maxOldGenerationSizeMb: MAX_HEAP_MIB }
    const worker = new Worker(THREAD_MODULE, { execArgv: [], resourceLimits })
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined
    }
    worker.on('error', forget)
    worker.on('exit', forget)
    worker.unref()
    return worker
  }
}

/** A source to send, with a body that is alone in its memory. */
function withoutConfig(source: BodySource): BodyJob['source'] {
  const { body, headerLength, modelName = '', inputs = [] } = source
  const isAlone = body.byteLength === body.buffer.byteLength
  return { headerLength, modelName, inputs, body: isAlone ? body : new Uint8Array(body) }
}

function toRefusal(cause: Error, bytes: number): ServeError {
  if (!('code' in cause) || cause.code !== 'ERR_WORKER_OUT_OF_MEMORY') return ServeError.from(cause)
  const text = `a JSON document of ${bytes} bytes takes more memory than this server has for it; send tensors as binary data`
  return new ServeError('MESSAGE_TOO_LARGE', text, { cause })
}
