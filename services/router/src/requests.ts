import { randomUUID } from 'node:crypto'
import type { CallContext, Clock, Span } from '@tutti/chassis'
import { retryDelayMs } from '@tutti/ensemble'
import { bug, ServeError } from '@tutti/errors'
import { checkInferRequest, isDecoupled } from '@tutti/model-config'
import type { ResolvedModel, StatisticsRecorder } from '@tutti/server'
import type { Executed, InferRequest, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { executeWithRetries } from '@tutti/transport'
import { startEnsembleSpan } from './call-spans.ts'
import type { ResolvedEntry } from './catalog.ts'
import { type EnsembleDependencies, EnsembleExecution } from './ensemble-execution.ts'
import { recordFailure } from './ensemble-recorders.ts'
import { callModel, type RequestOwner, RevisionPins } from './model-call.ts'
import type { PinnedRequests } from './pinned-requests.ts'

export interface RequestsOptions extends EnsembleDependencies {
  /** @throws ServeError for a model or version that is not served. */
  readonly lookup: (name: string, version: string) => ResolvedEntry
  readonly recorderOf: (ensemble: ResolvedEntry) => StatisticsRecorder | undefined
  readonly pinned: PinnedRequests
}

/** A model version that a request was resolved to, be it a model of the steps or an ensemble. */
export interface RoutedModel extends ResolvedModel {
  /** @param callers - the models that called one another up to the request, the outermost first; absent for a client's. */
  execute(
    request: InferRequest,
    sink: ResponseSink,
    context: CallContext,
    callers?: readonly string[],
  ): void
}

/**
 * The way of each request through the router: it is resolved, admitted (from then on its revisions are pinned) and executed.
 * A model is called with retries; an ensemble is recorded, traced and run.
 */
export class Requests {
  readonly #o: RequestsOptions
  /** Keys that no other process makes: a UUID for each request would cost more than the rest of its admission. */
  readonly #keyPrefix = randomUUID()
  #admitted = 0
  /** What was resolved under the catalog of now: requests ask for the same again and again. */
  #resolved = new Map<string, RoutedModel>()

  constructor(o: RequestsOptions) {
    this.#o = o
  }

  /** There is another catalog. */
  forget(): void {
    this.#resolved = new Map()
  }

  /** @throws ServeError with Triton's look-up texts. */
  readonly resolve = (name: string, version: string): RoutedModel => {
    // Only the empty version is worth keeping: others can be written in any number of ways.
    const known = version === '' ? this.#resolved.get(name) : undefined
    if (known !== undefined) return known
    const model = this.#toModel(name, this.#o.lookup(name, version))
    if (version === '') this.#resolved.set(name, model)
    return model
  }

  #toModel(name: string, resolved: ResolvedEntry): RoutedModel {
    const { config, labels, version, plan } = resolved
    const recorder = this.#o.recorderOf(resolved)
    return {
      name,
      version: version.version,
      config,
      isDecoupled: isDecoupled(config),
      labels: (output) => labels[output],
      execute: (request, sink, context, callers) => {
        const key = `${this.#keyPrefix}-${this.#admitted++}`
        const admitted = new AdmittedRequest({ key, resolved, callers, sink }, this.#o.pinned)
        if (plan === undefined) this.#callModel(admitted, request, context)
        else this.#runEnsemble(admitted, recorder, request, context)
      },
    }
  }

  #callModel(owner: AdmittedRequest, request: InferRequest, context: CallContext): void {
    const { signal } = context
    const target = owner.resolved
    const call = { target, request, ensemble: '', step: '', attempt: 1, owner, context, signal }
    const attempt = (tries: number, sink: ResponseSink): void =>
      callModel(this.#o, tries === 1 ? call : { ...call, attempt: tries }, sink)
    executeWithRetries({ attempt, delayMs: retryDelayMs, clock: this.#o.clock, signal }, owner)
  }

  #runEnsemble(
    owner: AdmittedRequest,
    recorder: StatisticsRecorder | undefined,
    request: InferRequest,
    context: CallContext,
  ): void {
    const { clock, tracing } = this.#o
    const target = owner.resolved
    const span = tracing && startEnsembleSpan(tracing, target, context.trace)
    const sink = new RecordedEnsemble(owner, clock, recorder, span)
    try {
      const checked = checkInferRequest(target.config, request)
      const trace = span?.traceParent
      const inner = trace === undefined ? context : { ...context, trace }
      const call = { target, request: checked, owner, context: inner }
      const execution = new EnsembleExecution(this.#o, call, sink)
      sink.begin(checked.batchSize)
      // The run itself knows the ensemble's `reshape`, so it gets the inputs as the client shaped them.
      execution.start(request)
    } catch (error) {
      sink.fail(ServeError.from(error), 'no')
    }
  }
}

/** A request on its whole way, nested ensembles included. What it pins stays pinned until it is answered. */
class AdmittedRequest implements RequestOwner, ResponseSink {
  readonly key: string
  readonly pins = new RevisionPins()
  readonly resolved: ResolvedEntry
  readonly callers: readonly string[] | undefined
  readonly #pinned: PinnedRequests
  readonly #sink: ResponseSink

  constructor(
    o: Pick<AdmittedRequest, 'key' | 'resolved' | 'callers'> & { readonly sink: ResponseSink },
    pinned: PinnedRequests,
  ) {
    this.key = o.key
    this.resolved = o.resolved
    this.callers = o.callers
    this.#sink = o.sink
    this.#pinned = pinned
    pinned.open.add(this)
  }

  send(response: StepResponse): void {
    if (response.final) this.#release()
    this.#sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#release()
    this.#sink.fail(error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  #release(): void {
    this.#pinned.open.delete(this)
    if (this.#pinned.waiting.length > 0) this.#pinned.wake()
  }
}

/** Takes the responses of an ensemble: counts the request in the statistics and ends its span. */
class RecordedEnsemble implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #clock: Clock
  readonly #recorder: StatisticsRecorder | undefined
  readonly #span: Span | undefined
  readonly #startedAt: number
  /** 0 until it begins: what is refused before is counted nowhere, as in Triton. */
  #batchSize = 0

  constructor(
    sink: ResponseSink,
    clock: Clock,
    recorder: StatisticsRecorder | undefined,
    span: Span | undefined,
  ) {
    this.#sink = sink
    this.#clock = clock
    this.#recorder = recorder
    this.#span = span
    this.#startedAt = clock.now()
  }

  begin(batchSize: number): void {
    this.#batchSize = Math.max(1, batchSize)
    this.#recorder?.addPending(1)
  }

  send(response: StepResponse): void {
    if (response.final) this.#succeeded(response.times)
    this.#sink.send(response)
  }

  fail(error: ServeError, executed: Executed): void {
    if (this.#recorder !== undefined && this.#batchSize > 0) {
      recordFailure(this.#recorder, this.#elapsedNs())
    }
    this.#span?.recordError(error)
    this.#span?.end()
    this.#sink.fail(error, executed)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  #succeeded(times: StepTimes | undefined): void {
    if (times === undefined) throw bug('an ensemble answered without times')
    const batchSize = this.#batchSize
    const recorded = { requestNs: this.#elapsedNs(), batchSize, ...times }
    this.#recorder?.addPending(-1)
    this.#recorder?.recordSuccess(recorded)
    this.#recorder?.recordExecution(recorded)
    this.#span?.end()
  }

  #elapsedNs(): number {
    return (this.#clock.now() - this.#startedAt) * 1e6
  }
}
