import type { Span } from '@tutti/chassis'
import { bug, type ServeError } from '@tutti/errors'
import type {
  Executed,
  RequestEnd,
  RequestObserver,
  RequestWatch,
  ResponseSink,
  StepResponse,
  StepTimes,
} from '@tutti/tensor'
import type { BoundTracing } from '../calls/bound-tracing.ts'
import { startEnsembleSpan } from '../calls/call-spans.ts'
import type {
  NestedCall,
  RequestCallContext,
  RequestDependencies,
} from '../calls/request-dependencies.ts'

interface RecordDependencies extends Pick<RequestDependencies, 'clock'> {
  readonly observer: RequestObserver | undefined
  /** Bounds the spans of the request; absent if it has none. */
  readonly tracing: BoundTracing | undefined
}

/** Publishes the events of a request to an ensemble, has its span, and passes on what comes. */
export class EnsembleRecord implements ResponseSink {
  /** Context of the steps' calls, under the span of the ensemble. */
  readonly context: RequestCallContext
  readonly #dependencies: RecordDependencies
  readonly #call: NestedCall
  readonly #sink: ResponseSink
  readonly #span: Span | undefined
  readonly #startedAt: number
  /** Undefined until it begins: what is refused before is counted nowhere, as in Triton, and what a cache answers it has counted. */
  #batchSize: number | undefined
  #watch: RequestWatch | undefined

  constructor(o: RecordDependencies, call: NestedCall, sink: ResponseSink) {
    const { target, context } = call
    this.#dependencies = o
    this.#call = call
    this.#sink = sink
    this.#span = o.tracing && startEnsembleSpan(o.tracing, target, context.trace)
    const span = this.#span
    const trace = span?.traceParent
    this.context = span === undefined ? context : { ...context, ...(trace && { trace }), span }
    this.#startedAt = o.clock.now()
  }

  begin(batchSize: number): void {
    this.#batchSize = Math.max(1, batchSize)
    const { entry, version } = this.#call.target
    const model = { name: entry.name, version: version.version, isEnsemble: true }
    this.#watch = this.#dependencies.observer?.began(model, this.#call.request, this.context)
    this.#watch?.queued?.()
  }

  send(response: StepResponse): void {
    const { final, times } = response
    if (final) {
      if (this.#batchSize !== undefined && times === undefined)
        return this.fail(bug('an ensemble answered without times'), 'maybe')
      this.#ended({ times })
      this.#endSpan()
    }
    this.#watch?.responded?.(response)
    this.#sink.send(response)
    if (final) this.#watch?.answered?.()
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#ended({ error, executed, times })
    this.#span?.recordError(error)
    this.#endSpan()
    this.#sink.fail(error, executed, times)
    this.#watch?.answered?.()
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  #endSpan(): void {
    const leftOut = this.#dependencies.tracing?.leftOut ?? 0
    if (leftOut > 0) this.#span?.setAttributes({ 'tutti.spans_left_out': leftOut })
    this.#span?.end()
  }

  #ended(end: Omit<RequestEnd, 'elapsedNs' | 'batchSize'>): void {
    if (this.#batchSize === undefined) return
    const elapsedNs = (this.#dependencies.clock.now() - this.#startedAt) * 1e6
    this.#watch?.dequeued?.()
    this.#watch?.ended?.({ ...end, elapsedNs, batchSize: this.#batchSize })
  }
}
