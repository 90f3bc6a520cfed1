import type { Clock, Tracing } from '@tutti/chassis'
import { type ByteCount, bug, ServeError } from '@tutti/errors'
import {
  type EnsemblePlan,
  type PartDefinition,
  planPart,
  readPartText,
  readProgram,
} from '@tutti/graph'
import type { ModelConfig } from '@tutti/model-config'
import {
  type ExecuteOptions,
  endingSink,
  executedBefore,
  type FindExecutor,
  type InferRequest,
  type ModelTarget,
  NO_TIMES,
  ReadyGate,
  type ResponseSink,
} from '@tutti/tensor'
import { ReplicaPlaces, revisionKey, UNWEIGHED } from '@tutti/transport'
import { boundTracing } from '../calls/bound-tracing.ts'
import type { RequestOwner } from '../calls/model-call.ts'
import { PinnedRequests } from '../calls/pinned-requests.ts'
import type { RequestDependencies } from '../calls/request-dependencies.ts'
import type { CatalogModel, CatalogVersion, ResolvedEntry } from '../catalog/catalog.ts'
import { PartReporter } from '../parts/part-report.ts'
import { type EnsembleCall, executePart } from './ensemble-execution.ts'

/** Parts whose plans are kept. */
const MAX_KEPT = 128

export interface PartRunnerOptions {
  /** Name of the process among all replicas. */
  readonly replica: string
  /** Executes requests to the models of the process. */
  readonly executor: FindExecutor
  /** Finds the configuration of a revision. @throws ServeError MODEL_NOT_FOUND, MODEL_NOT_READY or REVISION_GONE. */
  configOf(pin: ModelTarget): ModelConfig
  /** Most bytes of tensors between steps, of all parts that run; absent for no bound. */
  readonly maxBytes?: number
  readonly clock: Clock
  readonly tracing: Tracing | undefined
  /** Draws a number from 0 up to, but not including, 1; Math.random if absent. */
  readonly random?: () => number
}

/** A part that was planned. */
interface PlannedPart {
  readonly pins: PartDefinition['pins']
  readonly target: ResolvedEntry
}

/** Runs parts of graphs over the models of this process. A part is planned with its first request. */
export class PartRunner {
  readonly #options: PartRunnerOptions
  readonly #dependencies: Omit<RequestDependencies, 'metrics' | 'replicaCounts'>
  readonly #pins: RequestOwner['pins']
  /** By text; the one that was used last is the last. */
  readonly #planned = new Map<string, PlannedPart>()
  readonly #drained = new ReadyGate()
  readonly #memory: ByteCount
  #inFlight = 0
  #isStopping = false

  constructor(o: PartRunnerOptions) {
    this.#options = o
    this.#pins = ownPins(o.replica)
    this.#memory = bytesUpTo(o.maxBytes ?? Number.POSITIVE_INFINITY)
    this.#dependencies = {
      lookup: notHere,
      observerOf: () => undefined,
      pinned: new PinnedRequests(),
      memory: { count: 0, bytesInUse: 0 },
      inFlight: new Map(),
      directory: {
        places: new ReplicaPlaces(),
        isServed: () => true,
        whenDecided: () => undefined,
      },
      sequences: { begin: notHere },
      liveRevisions: () => [],
      replicas: { executor: o.executor },
      countNested: notHere,
      revisionRefused: () => {},
      clock: o.clock,
      random: o.random ?? Math.random,
      tracing: o.tracing?.isEnabled === true ? o.tracing : undefined,
    }
  }

  /** Executes a request for a part, as an Executor. Its last response, or its failure, reports what its steps did. */
  execute(program: string, request: InferRequest, sink: ResponseSink, o: ExecuteOptions): void {
    try {
      if (this.#isStopping) throw new ServeError('SERVER_STOPPING', 'the step stops')
      const { text, skipped } = readProgram(program)
      const { target } = this.#find(text)
      this.#run({ target, request, skipped }, sink, o)
    } catch (error) {
      const { replica } = this.#options
      const failure = ServeError.from(error)
      sink.fail(failure.withDetails({ replica }), executedBefore(failure))
    }
  }

  /** Takes no new requests, and resolves when all that it has are answered. */
  async drain(): Promise<void> {
    this.#isStopping = true
    if (this.#inFlight > 0) await this.#drained.wait()
  }

  #run(
    asked: Pick<EnsembleCall, 'target' | 'request' | 'skipped'>,
    sink: ResponseSink,
    o: ExecuteOptions,
  ): void {
    const { origin, ...options } = o
    const context = { ...options, memory: this.#memory }
    const reporter = new PartReporter()
    const { metrics, replicaCounts } = reporter
    this.#inFlight += 1
    const counted = endingSink(sink, () => {
      this.#inFlight -= 1
      if (this.#inFlight === 0 && this.#isStopping) this.#drained.open()
    })
    const report = (withheld: readonly string[] = []) => ({ withheld, steps: reporter.steps })
    const reporting: ResponseSink = {
      send: ({ times = NO_TIMES, ...response }) =>
        counted.send({ ...response, times: { ...times, part: report(times.part?.withheld) } }),
      fail: (error, executed, times = NO_TIMES) =>
        counted.fail(error, executed, { ...times, part: report() }),
      ready: () => counted.ready?.(),
    }
    const { requestKey = '', callers } = origin ?? {}
    const owner: RequestOwner = { key: requestKey, callers, pins: this.#pins }
    const call = { ...asked, owner, context }
    const { tracing } = this.#dependencies
    const traced = tracing && boundTracing(tracing)
    const counting = { ...this.#dependencies, tracing: traced, metrics, replicaCounts }
    executePart(counting, call, reporting)
  }

  #find(text: string): PlannedPart {
    const known = this.#planned.get(text)
    if (known !== undefined) {
      // A revision may have gone since the last request.
      this.#checkPins(known.pins)
      this.#planned.delete(text)
      this.#planned.set(text, known)
      return known
    }
    const part = readPartText(text)
    this.#checkPins(part.pins)
    const planned = { pins: part.pins, target: this.#plan(part) }
    const [oldest] = this.#planned.keys()
    if (this.#planned.size >= MAX_KEPT && oldest !== undefined) this.#planned.delete(oldest)
    this.#planned.set(text, planned)
    return planned
  }

  /** @throws ServeError of `configOf` for a revision that is not here. */
  #checkPins(pins: PartDefinition['pins']): void {
    for (const pin of pins) this.#options.configOf(pin)
  }

  #plan(part: PartDefinition): ResolvedEntry {
    const configOf = (pin: ModelTarget): ModelConfig => this.#options.configOf(pin)
    let plan: EnsemblePlan
    try {
      plan = planPart(part, configOf)
    } catch (error) {
      // Another release may plan otherwise. Nothing has run: the steps are called one by one then.
      const { message } = ServeError.from(error)
      const text = `a part of ensemble '${part.ensemble}' does not fit its models here: ${message}`
      throw new ServeError('MODEL_NOT_READY', text, { cause: error })
    }
    const entries = part.pins.map((pin) => [pin.model, toEntry(pin, configOf(pin))] as const)
    const models = new Map<string, CatalogModel>()
    for (const [name, entry] of entries) {
      const known = models.get(name)
      const versions = [...(known?.versions ?? []), ...entry.versions]
      models.set(name, { ...entry, versions: versions.toSorted((a, b) => a.version - b.version) })
    }
    return toTarget(plan, models)
  }
}

function toTarget(plan: EnsemblePlan, models: ReadonlyMap<string, CatalogModel>): ResolvedEntry {
  const { name, config } = plan
  const version: CatalogVersion = { ...READY, version: 1, revision: '', revisions: [] }
  const pinned = { model: name, version: 1, revision: '' }
  return {
    catalog: { models },
    entry: {
      kind: 'ensemble',
      name,
      config,
      labels: {},
      versions: [version],
      reason: '',
      plan,
      isWaiting: false,
      missing: [],
    },
    config,
    labels: {},
    version,
    pinned,
    pinnedKey: revisionKey(pinned),
    outputs: config.output.map((output) => output.name),
    plan,
    // This marks a part. It is not sent on as one, so there is no text.
    part: { text: '', models: [], keys: [] },
  }
}

const READY = { state: 'READY', reason: '' } as const

function toEntry({ model, version, revision }: ModelTarget, config: ModelConfig): CatalogModel {
  const live = { revision, config, signature: '', labels: {}, replicas: 1 }
  const versions = [{ ...READY, version, revision, revisions: [live] }]
  return { kind: 'model', name: model, config, labels: {}, versions, reason: '' }
}

const pinOf: RequestOwner['pins']['pinOf'] = ({ version, pinned: target, pinnedKey: key }) => {
  return { version, target, key, uses: 0 }
}

/** All revisions are those of this process, which has no other replica to try. */
function ownPins(replica: string): RequestOwner['pins'] {
  const idle = { inFlight: 0, inFlightThen: 0, workUs: 0, slowness: 1, hasAnswered: false }
  const own = { address: { replica }, load: undefined, ...idle }
  return {
    pinOf,
    choose: (_, resolved) => ({ pin: pinOf(resolved), replica: own, work: UNWEIGHED }),
    ended: () => {},
  }
}

/** Counts the bytes of all requests together. */
function bytesUpTo(most: number): ByteCount {
  let held = 0
  return {
    charge: (bytes) => {
      if (bytes > 0 && held + bytes > most) {
        const text = `step is overloaded: ${held} bytes are held between steps, ${bytes} more would exceed the bound of ${most}`
        throw new ServeError('OVERLOADED', text)
      }
      held += bytes
    },
  }
}

function notHere(): never {
  throw bug('a part has no nested ensemble, no sequence and no cache')
}
