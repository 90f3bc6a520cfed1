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

/**
 * Begins to observe a request from outside: by what its sink gets.
 *
 * @returns where its responses are to go, and the options with which it is to be executed: as they are if nobody watches it.
 */
export function observeRequest<O extends ExecuteOptions>(
  observer: RequestObserver,
  clock: Pick<Clock, 'now'>,
  { model, request, sink, options, client }: BeginningRequest<O>,
): readonly [ResponseSink, O] {
  const { trace } = options
  const call = { ...(trace && { trace }), ...(client && { client }) }
  const watch = joinObservers([observer])?.began(model, request, call)
  if (watch === undefined) return [sink, options]
  const { steps } = watch
  const below = steps && joinObservers([options.observer, steps])
  return [new ObservedSink(watch, clock, sink), below ? { ...options, observer: below } : options]
}

/** Passes everything on, after what watches it had it. */
class ObservedSink implements ResponseSink {
  readonly #watch: RequestWatch
  readonly #clock: Pick<Clock, 'now'>
  readonly #sink: ResponseSink
  readonly #startedAt: number

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

  #ended(end: Omit<RequestEnd, 'elapsedNs' | 'batchSize'>): void {
    const elapsedNs = (this.#clock.now() - this.#startedAt) * 1e6
    this.#watch.ended?.({ ...end, elapsedNs, batchSize: 0 })
  }
}
