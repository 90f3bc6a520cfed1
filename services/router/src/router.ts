import { randomUUID } from 'node:crypto'
import type { CallContext, Clock, Logger, Tracing } from '@tutti/chassis'
import type { EnsemblePlan, StepControl, StepDescription } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import {
  type IndexEntry,
  type InferenceBackend,
  type InferRequest,
  type InferResponse,
  type ResolvedModel,
  type ServerMetrics,
  StatisticsRecorder,
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
  lookupModel,
  type ResolvedEntry,
  readyVersions,
} from './catalog.ts'
import type { ExecutionDependencies, StepInvocation, StepSink } from './ensemble-execution.ts'
import type { EnsembleSource } from './ensemble-source.ts'
import { catalogChanged } from './log-events.ts'
import { callModel } from './model-call.ts'
import { executeNested } from './nested-ensemble.ts'
import type { RequestScope } from './request-scope.ts'
import { inferEnsemble, inferModel, type ModelInferDependencies } from './requests.ts'
import { collectStatistics } from './router-statistics.ts'
import { StepSlots } from './step-slots.ts'

export interface RouterOptions {
  /** Names this process, as the owner of the tensors that it holds. */
  readonly name: string
  readonly ensembles: readonly EnsembleSource[]
  readonly directory: StepDirectory
  readonly bearer: TensorBearer
  /** Triton's `--strict-readiness`: ready only if every known version is. */
  readonly strictReadiness: boolean
  readonly clock: Clock
  readonly log: Logger
  readonly tracing: Tracing
  readonly metrics: ServerMetrics
  /** Makes the key of a request; a random UUID and a count unless a test wants otherwise. */
  readonly newRequestKey?: () => string
}

/** The inference backend over step replicas and ensembles: looks to clients like one Triton server. */
export class Router implements InferenceBackend {
  readonly memory: TensorMemory
  readonly #o: RouterOptions
  readonly #steps = new Map<string, { control: StepControl; description: StepDescription }>()
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
    this.#execution = {
      clock: o.clock,
      memory: this.memory,
      slots: (plan) => this.#slotsOf(plan),
      invoke: (invocation, sink) => this.#invoke(invocation, sink),
    }
    const { bearer, directory, clock, tracing, metrics } = o
    this.#calls = { bearer, directory, clock, tracing, metrics, memory: this.memory }
    this.#newRequestKey = o.newRequestKey ?? requestKeys()
  }

  /** Learns what a step serves, or learns it anew. */
  async addStep(control: StepControl): Promise<void> {
    const description = await control.describe()
    this.#steps.set(description.replica, { control, description })
    this.#o.directory.announce(
      { replica: description.replica },
      description.models.flatMap((model) =>
        model.versions
          .filter((v) => v.state === 'READY')
          .map((v) => ({ model: model.name, version: v.version, revision: v.revision })),
      ),
    )
    this.#rebuild()
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
    return this.#entries().every((entry) =>
      entry.versions.every((v) => v.state === 'READY' || v.reason === 'unloaded'),
    )
  }

  isModelReady(name: string, version: string): boolean {
    try {
      lookupModel(this.#catalog, name, version)
      return true
    } catch (error) {
      const { reason } = ServeError.from(error)
      if (reason === 'MODEL_NOT_FOUND' || reason === 'MODEL_NOT_READY') return false
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
    const { entry } = resolved
    return {
      name,
      version: resolved.version.version,
      config: entry.config,
      isDecoupled: isDecoupled(entry.config),
      labels: (output) => entry.labels[output],
      infer: (request, context) => this.#infer(catalog, resolved, request, context),
    }
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const { entry, version: found } = lookupModel(this.#catalog, name, version)
    return modelMetadata(entry.config, version === '' ? readyVersions(entry) : [found.version])
  }

  statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    return collectStatistics(
      [...this.#steps.values()].map((step) => step.control),
      [...this.#recorders.values()],
      name,
      version,
    )
  }

  repositoryIndex(readyOnly: boolean): readonly IndexEntry[] {
    const entries = this.#entries().flatMap((entry): IndexEntry[] => {
      const { name, reason } = entry
      if (entry.versions.length === 0) return [{ name, version: '', state: 'UNAVAILABLE', reason }]
      return entry.versions.map((v) => ({
        name,
        version: String(v.version),
        state: v.state,
        reason: v.reason,
      }))
    })
    return readyOnly ? entries.filter((entry) => entry.state === 'READY') : entries
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
    }
    return new Promise((resolve) => {
      callModel(this.#calls, call, invocation, {
        responded: (response) => sink.responded(response),
        failed: (error, executed, times) => sink.failed(error, executed, times),
        ended: resolve,
      })
    })
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
    const descriptions = [...this.#steps.values()].map((step) => step.description)
    this.#catalog = buildCatalog(descriptions, this.#o.ensembles)
    this.#resolved = new Map()
    this.#record()
    catalogChanged(this.#o.log, this.#entries())
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
  if (deadlineAt === undefined && trace === undefined) return { signal, requestKey, catalog }
  return { ...context, requestKey, catalog }
}
