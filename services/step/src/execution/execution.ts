import type { BatchOptions, ExecutionTimes, LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import type { ExecutionHost } from './execution-host.ts'
import type { RequestExecution, ScheduledRequest } from './scheduled-request.ts'

/** One run of a batch on one instance: tells the engine of callers that leave, and its requests of the end. */
export class Execution implements BatchOptions, RequestExecution {
  readonly instance: number
  /** By the clock, in milliseconds. */
  readonly startedAt: number
  /** Called by an engine that is done with the instance before it has answered all. */
  readonly release: () => void
  readonly #host: ExecutionHost
  readonly #batch: readonly ScheduledRequest[]
  #abort: AbortController | undefined
  #abandonedFor: ServeError | undefined
  #onAbandon: ((request: number) => void) | undefined
  /** Places in the batch whose callers have left before their final response. */
  #left: number[] | undefined
  #live: number

  constructor(
    host: ExecutionHost,
    batch: readonly ScheduledRequest[],
    o: Pick<Execution, 'instance' | 'startedAt' | 'release'>,
  ) {
    this.instance = o.instance
    this.startedAt = o.startedAt
    this.release = o.release
    this.#host = host
    this.#batch = batch
    this.#live = batch.length
    for (const request of batch) request.begin(this)
  }

  /** Resolves when the engine is done with the requests, with the times if it did not fail; never rejects. */
  run(model: LoadedModel): Promise<ExecutionTimes | undefined> {
    return this.#execute(model).then(
      (times) => {
        this.#record(times)
        for (const request of this.#batch) request.executed(times, undefined)
        return times
      },
      (error: unknown) => {
        const failure = engineError(error)
        for (const request of this.#batch) request.executed(undefined, failure)
        return undefined
      },
    )
  }

  /** Made when an engine asks for it: most do not, and it costs more than the rest of a small request. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#abandonedFor !== undefined) this.#abort.abort(this.#abandonedFor)
    }
    return this.#abort.signal
  }

  onAbandon(listener: (request: number) => void): void {
    this.#onAbandon = listener
    for (const request of this.#left ?? []) listener(request)
  }

  /** The caller of a request has left. The last one to go ends the execution for the engine. */
  left(request: ScheduledRequest, error: ServeError, hasFinal: boolean): void {
    this.#live -= 1
    if (!hasFinal) {
      const place = this.#batch.indexOf(request)
      this.#left ??= []
      this.#left.push(place)
      this.#onAbandon?.(place)
    }
    if (this.#live > 0) return
    this.#abandonedFor = error
    this.#abort?.abort(error)
  }

  /** An engine that throws at once has failed like one that rejects. */
  #execute(model: LoadedModel): Promise<ExecutionTimes> {
    try {
      return model.execute(this.#batch, this)
    } catch (error) {
      return Promise.reject(engineError(error))
    }
  }

  #record(times: ExecutionTimes): void {
    let batchSize = 0
    for (const { request } of this.#batch) batchSize += Math.max(1, request.batchSize)
    this.#host.statistics.recordExecution({ ...times, batchSize })
  }
}

function engineError(error: unknown): ServeError {
  if (error instanceof ServeError) return error
  const { message } = ServeError.from(error)
  return new ServeError('ENGINE_FAILED', message, { cause: error })
}
