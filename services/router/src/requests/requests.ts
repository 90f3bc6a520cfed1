import { randomUUID } from 'node:crypto'
import type { Clock, Span } from '@tutti/chassis'
import { bug, type ServeError } from '@tutti/errors'
import { isDecoupled } from '@tutti/model-config'
import type { ResolvedModel } from '@tutti/serving'
import type { StatisticsRecorder } from '@tutti/telemetry'
import type { Executed, InferRequest, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import type { ResolvedEntry } from '../catalog/catalog.ts'
import { startEnsembleSpan } from './call-spans.ts'
import { callDirectly } from './direct-call.ts'
import { executeEnsemble } from './ensemble-execution.ts'
import { recordFailure } from './ensemble-recorders.ts'
import { type RequestOwner, RevisionPins } from './model-call.ts'
import type { PinnedEntry, PinnedRequests } from './pinned-requests.ts'
import type { RequestCallContext, RequestDependencies } from './request-dependencies.ts'

/** A model version that a request was resolved to, be it a model of the steps or an ensemble. */
export interface RoutedModel extends ResolvedModel {
  /** @param callers - the models that called one another up to the request, the outermost first; absent for a client's. */
  execute(
    request: InferRequest,
    sink: ResponseSink,
    context: RequestCallContext,
    callers?: readonly string[],
  ): void
}

/** The way of each request: it is resolved, admitted (its revisions are pinned), and a model is called or an ensemble run. */
export class Requests {
  readonly #o: RequestDependencies
  /** Keys that no other process makes: a UUID for each request would cost more than the rest of its admission. */
  readonly #keyPrefix = randomUUID()
  #admitted = 0
  /** Models that were resolved under the catalog of now: requests ask for the same again and again. */
  #resolved = new Map<string, RoutedModel>()

  constructor(o: RequestDependencies) {
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
    const pin: PinnedEntry = { resolved, requests: 0 }
    return {
      name,
      version: version.version,
      config,
      isDecoupled: isDecoupled(config),
      labels: (output) => labels[output],
      execute: (request, sink, context, callers) => {
        const key = `${this.#keyPrefix}-${this.#admitted++}`
        const record = plan && new EnsembleRecord(this.#o, resolved, recorder, context)
        const { pinned } = this.#o
        const to = recorder?.watch?.(sink, record?.context.trace) ?? sink
        const owner = new AdmittedRequest({ key, pin, callers, sink: to, record, pinned })
        const call = { target: resolved, request, owner, context: record?.context ?? context }
        if (record === undefined) callDirectly(this.#o, call, owner)
        else executeEnsemble(this.#o, call, owner, (batchSize) => record.begin(batchSize))
      },
    }
  }
}

interface AdmittedOptions extends Pick<RequestOwner, 'key' | 'callers'> {
  readonly pin: PinnedEntry
  readonly pinned: PinnedRequests
  readonly sink: ResponseSink
  readonly record: EnsembleRecord | undefined
}

/** A request on its whole way, nested ensembles included. What it pins stays pinned until it is answered. */
class AdmittedRequest implements RequestOwner, ResponseSink {
  readonly key: string
  readonly pins = new RevisionPins()
  readonly callers: readonly string[] | undefined
  readonly #o: AdmittedOptions

  constructor(o: AdmittedOptions) {
    this.#o = o
    this.key = o.key
    this.callers = o.callers
    if (o.pin.requests++ === 0) o.pinned.open.push(o.pin)
  }

  send(response: StepResponse): void {
    if (response.final) {
      this.#o.record?.succeeded(response.times)
      this.#release()
    }
    this.#o.sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#o.record?.failed(error)
    this.#release()
    this.#o.sink.fail(error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#o.sink.ready?.()
  }

  #release(): void {
    const { pin, pinned } = this.#o
    pin.requests -= 1
    if (pin.requests > 0) return
    pinned.open.splice(pinned.open.indexOf(pin), 1)
    if (pinned.waiting.length > 0) pinned.wake()
  }
}

/** The statistics and the span of a request to an ensemble. */
export class EnsembleRecord {
  /** In which the steps are called: under the span. */
  readonly context: RequestCallContext
  readonly #clock: Clock
  readonly #recorder: StatisticsRecorder | undefined
  readonly #span: Span | undefined
  readonly #startedAt: number
  /** 0 until it begins: what is refused before is counted nowhere, as in Triton. */
  #batchSize = 0

  constructor(
    { clock, tracing }: Pick<RequestDependencies, 'clock' | 'tracing'>,
    target: ResolvedEntry,
    recorder: StatisticsRecorder | undefined,
    context: RequestCallContext,
  ) {
    this.#span = tracing && startEnsembleSpan(tracing, target, context.trace)
    const trace = this.#span?.traceParent
    this.context = trace === undefined ? context : { ...context, trace }
    this.#clock = clock
    this.#recorder = recorder
    this.#startedAt = clock.now()
  }

  begin(batchSize: number): void {
    this.#batchSize = Math.max(1, batchSize)
    if (this.#recorder !== undefined) this.#recorder.pending += 1
  }

  succeeded(times: StepTimes | undefined): void {
    // A cache answered, and has counted it.
    if (this.#batchSize === 0) return this.#span?.end()
    if (times === undefined) throw bug('an ensemble answered without times')
    const recorded = { requestNs: this.#elapsedNs(), batchSize: this.#batchSize, ...times }
    if (this.#recorder !== undefined) this.#recorder.pending -= 1
    this.#recorder?.recordSuccess(recorded)
    this.#recorder?.recordExecution(recorded)
    this.#span?.end()
  }

  failed(error: ServeError): void {
    if (this.#recorder !== undefined && this.#batchSize > 0) {
      recordFailure(this.#recorder, this.#elapsedNs(), error)
    }
    this.#span?.recordError(error)
    this.#span?.end()
  }

  #elapsedNs(): number {
    return (this.#clock.now() - this.#startedAt) * 1e6
  }
}
