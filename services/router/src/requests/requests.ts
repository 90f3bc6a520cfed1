import { randomUUID } from 'node:crypto'
import type { ServeError } from '@tutti/errors'
import { isDecoupled } from '@tutti/model-config'
import type { ResolvedModel } from '@tutti/serving'
import type { Executed, InferRequest, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { boundTracing } from '../calls/bound-tracing.ts'
import { callDirectly } from '../calls/direct-call.ts'
import { type RequestOwner, RevisionPins } from '../calls/model-call.ts'
import type { PinnedEntry, PinnedRequests } from '../calls/pinned-requests.ts'
import type { RequestCallContext, RequestDependencies } from '../calls/request-dependencies.ts'
import type { ResolvedEntry } from '../catalog/catalog.ts'
import { executeEnsemble } from './ensemble-execution.ts'
import { EnsembleRecord } from './ensemble-record.ts'

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
  readonly #dependencies: RequestDependencies
  /** Keys that no other process makes: a UUID for each request would cost more than the rest of its admission. */
  readonly #keyPrefix = randomUUID()
  #admitted = 0
  /** Models that were resolved under the catalog of now: requests ask for the same again and again. */
  #resolved = new Map<string, RoutedModel>()

  constructor(o: RequestDependencies) {
    this.#dependencies = o
  }

  /** Forgets the previous catalog. */
  forget(): void {
    this.#resolved = new Map()
  }

  /** @throws ServeError with Triton's look-up texts. */
  readonly resolve = (name: string, version: string): RoutedModel => {
    // Only the empty version is worth keeping: others can be written in any number of ways.
    const known = version === '' ? this.#resolved.get(name) : undefined
    if (known !== undefined) return known
    const model = this.#toModel(name, this.#dependencies.lookup(name, version))
    if (version === '') this.#resolved.set(name, model)
    return model
  }

  /** Finds the labels of a version now: those of a model that was started for a request came with its replica. */
  #labelsNow(name: string, version: number): ResolvedEntry['labels'] {
    try {
      return this.#dependencies.lookup(name, String(version)).labels
    } catch {
      // It is gone again, and so are its labels.
      return {}
    }
  }

  #toModel(name: string, resolved: ResolvedEntry): RoutedModel {
    const { config, labels, version, plan } = resolved
    const observer = this.#dependencies.observerOf(resolved)
    const { clock, tracing, pinned } = this.#dependencies
    const pin: PinnedEntry = { resolved, requests: 0 }
    return {
      name,
      version: version.version,
      config,
      isDecoupled: isDecoupled(config),
      labels: (output) => labels[output] ?? this.#labelsNow(name, version.version)[output],
      execute: (request, sink, context, callers) => {
        const key = `${this.#keyPrefix}-${this.#admitted++}`
        const traced = plan && tracing && boundTracing(tracing)
        const record =
          plan &&
          new EnsembleRecord(
            { clock, tracing: traced, observer },
            { target: resolved, request, context },
            sink,
          )
        const owner = new AdmittedRequest({ key, pin, callers, sink: record ?? sink, pinned })
        const call = { target: resolved, request, owner, context: record?.context ?? context }
        if (record === undefined) callDirectly(this.#dependencies, call, owner)
        else {
          const o = traced ? { ...this.#dependencies, tracing: traced } : this.#dependencies
          executeEnsemble(o, call, owner, (batchSize) => record.begin(batchSize))
        }
      },
    }
  }
}

interface Admitted extends Pick<RequestOwner, 'key' | 'callers'> {
  readonly pin: PinnedEntry
  readonly pinned: PinnedRequests
  readonly sink: ResponseSink
}

/** A request on its whole way, nested ensembles included. What it pins stays pinned until it is answered. */
class AdmittedRequest implements RequestOwner, ResponseSink {
  readonly key: string
  readonly pins = new RevisionPins()
  readonly callers: readonly string[] | undefined
  readonly root: ResolvedEntry
  readonly #request: Admitted

  constructor(o: Admitted) {
    this.#request = o
    this.key = o.key
    this.root = o.pin.resolved
    this.callers = o.callers
    if (o.pin.requests++ === 0) o.pinned.open.push(o.pin)
  }

  send(response: StepResponse): void {
    if (response.final) this.#release()
    this.#request.sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#release()
    this.#request.sink.fail(error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#request.sink.ready?.()
  }

  #release(): void {
    const { pin, pinned } = this.#request
    pin.requests -= 1
    if (pin.requests > 0) return
    pinned.open.splice(pinned.open.indexOf(pin), 1)
    if (pinned.waiting.length > 0) pinned.wake()
  }
}
