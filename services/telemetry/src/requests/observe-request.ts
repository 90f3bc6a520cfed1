import type { Clock } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import type {
  Executed,
  ExecuteOptions,
  InferRequest,
  ObservedCall,
  ObservedModel,
  RequestEnd,
  RequestObserver,
  RequestWatch,
  ResponseSink,
  StepCount,
  StepResponse,
  StepTimes,
} from '@tutti/tensor'
import { joinObservers } from './join-observers.ts'

/** A request that begins. */
export interface BeginningRequest<O extends ExecuteOptions = ExecuteOptions>
  extends Pick<ObservedCall, 'client'> {
  readonly model: ObservedModel
  readonly request: InferRequest
  readonly sink: ResponseSink
  readonly options: O
}

/** Takes further events of a request that is observed. */
export interface ObservedRequest {
  /** So much more was done around it. @param reason - of the first error, for items that failed. */
  counted(what: StepCount, count: number, reason?: string): void
  /** Its caller waits no longer. It ends with the error, unless it has ended. */
  left(error: ServeError): void
}

/**
 * Begins to observe a request from outside: by what its sink gets.
 *
 * @returns where its responses are to go, the options with which it is to be executed, and what takes further events of it. Nobody watches
 * it: the sink and the options as they are.
 */
export function observeRequest<O extends ExecuteOptions>(
  observer: RequestObserver,
  clock: Pick<Clock, 'now'>,
  { model, request, sink, options, client }: BeginningRequest<O>,
): readonly [ResponseSink, O, ObservedRequest | undefined] {
  const { trace } = options
  const call = { ...(trace && { trace }), ...(client && { client }) }
  const watch = joinObservers([observer])?.began(model, request, call)
  if (watch === undefined) return [sink, options, undefined]
  const { steps } = watch
  const below = steps && joinObservers([options.observer, steps])
  const given = below ? { ...options, observer: below } : options
  const observed = new ObservedSink(watch, clock, sink)
  return [observed, given, observed]
}

/** Passes everything on, after what watches it had it. */
class ObservedSink implements ResponseSink, ObservedRequest {
  readonly #watch: RequestWatch
  readonly #clock: Pick<Clock, 'now'>
  readonly #sink: ResponseSink
  readonly #startedAt: number
  #hasEnded = false

  constructor(watch: RequestWatch, clock: Pick<Clock, 'now'>, sink: ResponseSink) {
    this.#watch = watch
    this.#clock = clock
    this.#sink = sink
    this.#startedAt = clock.now()
  }

  send(response: StepResponse): void {
    if (response.final) this.#ended({ times: response.times })
    this.#watch.responded?.(response)
    this.#sink.send(response)
    if (response.final) this.#watch.answered?.()
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#ended({ error, executed, times })
    this.#sink.fail(error, executed, times)
    this.#watch.answered?.()
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  counted(...counted: Parameters<ObservedRequest['counted']>): void {
    this.#watch.counted?.(...counted)
  }

  left(error: ServeError): void {
    this.#ended({ error, executed: 'maybe' })
  }

  #ended(end: Omit<RequestEnd, 'elapsedNs' | 'batchSize'>): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    const elapsedNs = (this.#clock.now() - this.#startedAt) * 1e6
    this.#watch.ended?.({ ...end, elapsedNs, batchSize: 0 })
  }
}
