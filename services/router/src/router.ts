import { randomUUID } from 'node:crypto'
import type { CallContext, Clock, Logger, Tracing } from '@tutti/chassis'
import type { EnsemblePlan, StepControl, StepDescription } from '@tutti/ensemble'
import { type Reason, ServeError } from '@tutti/errors'
import {
  areAllReady,
  type IndexEntry,
  type InferenceBackend,
  type InferRequest,
  type InferResponse,
  type ResolvedModel,
  readyVersions,
  type ServerMetrics,
  StatisticsRecorder,
  toIndex,
} from '@tutti/front-door'
import {
  isDecoupled,
  type ModelMetadata,
  type ModelStatistics,
  modelMetadata,
} from '@tutti/model-config'
import { TensorMemory } from '@tutti/tensor'
import type { StepDirectory, TensorBearer } from '@tutti/transport'
import { buildCatalog } from './build-catalog.ts'
import {
  type Catalog,
  type CatalogEnsemble,
  type CatalogModel,
  EMPTY_CATALOG,
  type LiveRevision,
  lookupModel,
  type ResolvedEntry,
} from './catalog.ts'
import type { ExecutionDependencies, StepInvocation, StepSink } from './ensemble-execution.ts'
import type { EnsembleSource } from './ensemble-source.ts'
import { catalogChanged } from './log-events.ts'
import { callModel } from './model-call.ts'
import { executeNested } from './nested-ensemble.ts'
import type { RequestScope } from './request-scope.ts'
import { inferEnsemble, inferModel, type ModelInferDependencies } from './requests.ts'
import { RevisionPins } from './revision-pins.ts'
import { collectStatistics } from './router-statistics.ts'
import { type Revisions, StepMembers } from './step-members.ts'
import { StepSlots } from './step-slots.ts'

export interface RouterOptions {
  /** Names this process, as the owner of the tensors that it holds. */
  readonly name: string
  readonly ensembles: readonly EnsembleSource[]
  readonly directory: StepDirectory
  readonly bearer: TensorBearer
  /** Triton's `--strict-readiness`: ready only if every known version is. */
  readonly strictReadiness: boolean
  /** Steps come and go: not ready, with strict readiness, while an ensemble lacks a model that a step may bring. */
  readonly awaitsSteps?: boolean
  readonly clock: Clock
  readonly log: Logger
  readonly tracing: Tracing
  readonly metrics: ServerMetrics
  /** Makes the key of a request; a random UUID and a count unless a test wants otherwise. */
  readonly newRequestKey?: () => string
  /** A replica refused a revision that it was thought to serve: what is known of it is out of date. */
  readonly revisionRefused?: (replica: string) => void
}

/** What a lookup says of a model that is not ready, whatever it is that it lacks. */
const NOT_READY: ReadonlySet<Reason> = new Set<Reason>([
  'MODEL_NOT_FOUND',
  'MODEL_NOT_READY',
  'STEP_UNAVAILABLE',
])

/** The inference backend over step replicas and ensembles: looks to clients like one Triton server. */
export class Router implements InferenceBackend {
  readonly memory: TensorMemory
  readonly #o: RouterOptions
  readonly #members: StepMembers
  readonly #recorders = new Map<string, StatisticsRecorder>()
  readonly #slots = new WeakMap<EnsemblePlan, readonly StepSlots[]>()
  readonly #execution: ExecutionDependencies
  readonly #calls: ModelInferDependencies
  readonly #newRequestKey: () => string
  /** What clients asked for so far, of the models as they are now: requests ask for the same again and again. */
  #resolved = new Map<string, ResolvedModel>()
  #catalog: Catalog = EMPTY_CATALOG
  #isLive = true

  constructor(o: RouterOptions) {
    this.#o = o
    this.memory = new TensorMemory(o.name)
    this.#members = new StepMembers(o.directory)
    this.#calls = {
      bearer: o.bearer,
      directory: o.directory,
      clock: o.clock,
      tracing: o.tracing,
      metrics: o.metrics,
      memory: this.memory,
      liveRevisions: (model, version) => this.#liveRevisions(model, version),
      revisionRefused: (replica) => o.revisionRefused?.(replica),
    }
    this.#execution = {
      clock: o.clock,
      memory: this.memory,
      slots: (plan) => this.#slotsOf(plan),
      invoke: (invocation, sink) => this.#invoke(invocation, sink),
    }
    this.#newRequestKey = o.newRequestKey ?? requestKeys()
    // Ensembles that wait for their models are there from the start.
    if (o.awaitsSteps === true) this.#rebuild()
  }

  /** Asks a step what it serves, and learns it or learns it anew. */
  async addStep(control: StepControl): Promise<void> {
    this.stepDescribed(await control.describe(), control)
  }

  /** Learns what a step serves. */
  stepDescribed(description: StepDescription, control: StepControl): void {
    this.#members.describe(description, control)
    this.#rebuild()
  }

  /** Takes from a heartbeat what a step takes work for now; what it is comes with its description. */
  stepAnnounced(replica: string, revisions: Revisions): void {
    this.#members.announce(replica, revisions)
    this.#rebuild()
  }

  /** The step is gone; what is in flight there is the bearer's to fail. */
  removeStep(replica: string): void {
    if (this.#members.remove(replica)) this.#rebuild()
  }

  /** From now on the server is not live: health says so, and new requests are refused by the doors. */
  stop(): void {
    this.#isLive = false
  }

  isLive(): boolean {
    return this.#isLive
  }

  isReady(): boolean {
    if (!this.#isLive) return false
    if (!this.#o.strictReadiness) return true
    const entries = this.#entries()
    if (this.#o.awaitsSteps === true && entries.some(isWaiting)) return false
    return areAllReady(entries)
  }

  isModelReady(name: string, version: string): boolean {
    try {
      lookupModel(this.#catalog, name, version)
      return true
    } catch (error) {
      const { reason } = ServeError.from(error)
      if (NOT_READY.has(reason)) return false
      throw error
    }
  }

  resolve(name: string, version: string): ResolvedModel {
    // Only the empty version is worth keeping: others can be written in any number of ways.
    const known = version === '' ? this.#resolved.get(name) : undefined
    if (known !== undefined) return known
    const model = this.#resolve(name, version)
    if (version === '') this.#resolved.set(name, model)
    return model
  }

  #resolve(name: string, version: string): ResolvedModel {
    const catalog = this.#catalog
    const resolved = lookupModel(catalog, name, version)
    const { config, labels } = resolved
    return {
      name,
      version: resolved.version.version,
      config,
      isDecoupled: isDecoupled(config),
      labels: (output) => labels[output],
      infer: (request, context) => this.#infer(catalog, resolved, request, context),
    }
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const { entry, config, version: found } = lookupModel(this.#catalog, name, version)
    return modelMetadata(config, version === '' ? readyVersions(entry) : [found.version])
  }

  statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    const ensembles = [...this.#recorders.values()]
    return collectStatistics(this.#members.controls, ensembles, name, version)
  }

  repositoryIndex(readyOnly: boolean): readonly IndexEntry[] {
    return toIndex(this.#entries(), readyOnly)
  }

  #infer(
    catalog: Catalog,
    resolved: ResolvedEntry,
    request: InferRequest,
    context: CallContext,
  ): AsyncIterable<InferResponse> {
    const scope = toScope(context, this.#newRequestKey(), catalog)
    if (resolved.entry.kind === 'model') return inferModel(this.#calls, resolved, request, scope)
    const recorder = this.#recorders.get(recorderKey(resolved.entry.name, resolved.version.version))
    return inferEnsemble(
      { ...this.#execution, tracing: this.#o.tracing, recorder },
      resolved,
      request,
      scope,
    )
  }

  #invoke(invocation: StepInvocation, sink: StepSink): Promise<void> {
    const { entry, version } = invocation.target
    if (entry.kind === 'ensemble') return executeNested(this.#execution, invocation, sink)
    const call = {
      ...invocation,
      model: entry.name,
      version: version.version,
      revision: version.revision,
      signature: version.revisions[0]?.signature ?? '',
    }
    return new Promise((resolve) => {
      callModel(this.#calls, call, invocation, {
        responded: (response) => sink.responded(response),
        failed: (error, executed, times) => sink.failed(error, executed, times),
        ended: resolve,
      })
    })
  }

  #liveRevisions(model: string, version: number): readonly LiveRevision[] {
    const entry = this.#catalog.models.get(model)
    return entry?.versions.find((v) => v.version === version)?.revisions ?? []
  }

  #entries(): (CatalogModel | CatalogEnsemble)[] {
    return [...this.#catalog.models.values()]
  }

  #slotsOf(plan: EnsemblePlan): readonly StepSlots[] {
    const known = this.#slots.get(plan)
    if (known !== undefined) return known
    const slots = plan.steps.map(() => new StepSlots(plan.stepSlots.maxInflightRequests))
    this.#slots.set(plan, slots)
    return slots
  }

  #rebuild(): void {
    const previous = this.#catalog
    this.#catalog = buildCatalog(this.#members.described, this.#o.ensembles, previous)
    this.#resolved = new Map()
    this.#record()
    const { log, awaitsSteps = false } = this.#o
    catalogChanged(log, this.#catalog, previous, { awaitsSteps })
  }

  /** Every served ensemble version has a recorder; it outlives changes of the catalog, so that counts go on. */
  #record(): void {
    for (const entry of this.#entries()) {
      if (entry.kind !== 'ensemble') continue
      for (const { version } of entry.versions) {
        const key = recorderKey(entry.name, version)
        if (this.#recorders.has(key)) continue
        const recorder = new StatisticsRecorder({
          name: entry.name,
          version: String(version),
          clock: this.#o.clock,
        })
        this.#recorders.set(key, recorder)
        this.#o.metrics.addModel(recorder, {
          name: entry.name,
          version: '1',
          tags: entry.config?.metric_tags ?? {},
        })
        for (const step of entry.plan?.steps ?? []) {
          const { name, model } = step
          this.#o.metrics.addStep({ ensemble: entry.name, step: name, model })
        }
      }
    }
  }
}

function isWaiting(entry: CatalogModel | CatalogEnsemble): boolean {
  return entry.kind === 'ensemble' && entry.isWaiting
}

function recorderKey(name: string, version: number): string {
  return `${name} ${version}`
}

/** Keys that no other process makes: a random UUID for each request would cost more than the rest of its scope. */
function requestKeys(): () => string {
  const prefix = randomUUID()
  let count = 0
  return () => `${prefix}-${count++}`
}

function toScope(context: CallContext, requestKey: string, catalog: Catalog): RequestScope {
  const { signal, deadlineAt, trace } = context
  // Most requests have neither, and objects of one shape are cheaper to read.
  const pins = new RevisionPins()
  if (deadlineAt === undefined && trace === undefined) return { signal, requestKey, catalog, pins }
  return { ...context, requestKey, catalog, pins }
}
