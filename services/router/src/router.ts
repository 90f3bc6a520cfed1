import { randomUUID } from 'node:crypto'
import type { CallContext, Tracing } from '@tutti/chassis'
import type {
  EnsemblePlan,
  PinnedVersion,
  ServedByRouter,
  StepControl,
  StepDescription,
} from '@tutti/ensemble'
import {
  isDecoupled,
  type ModelMetadata,
  type ModelStatistics,
  modelMetadata,
} from '@tutti/model-config'
import {
  type IndexEntry,
  type InferenceBackend,
  type ModelControl,
  type ResolvedModel,
  readyVersions,
  type ServerMetrics,
  toIndex,
  withNames,
} from '@tutti/server'
import {
  type FindExecutor,
  type InferRequest,
  type ResponseSink,
  TensorMemory,
} from '@tutti/tensor'
import type { AnswerQuestion, FindReplicaExecutor } from '@tutti/transport'
import type { AcceptedSet } from './accepted/accepted-set.ts'
import type { Catalog, CatalogEnsemble, CatalogModel, ResolvedEntry } from './catalog.ts'
import { EnsembleAdmission } from './ensemble-admission.ts'
import type { ExecutionDependencies, StepInvocation } from './ensemble-execution.ts'
import { EnsembleRecorders } from './ensemble-recorders.ts'
import type { EnsembleSource } from './ensemble-source.ts'
import { type CallDependencies, callModel } from './model-call.ts'
import { executeNested } from './nested-ensemble.ts'
import {
  createNestedExecutors,
  NESTING_DEFAULTS,
  type NestedTarget,
  type NestingBounds,
} from './nested-requests.ts'
import { PinCounts } from './pin-counts.ts'
import type { RequestScope } from './request-scope.ts'
import { inferEnsemble, inferModel } from './requests.ts'
import { RevisionPins } from './revision-pins.ts'
import { createRouterAnswers } from './router-answers.ts'
import { collectStatistics } from './router-statistics.ts'
import { ServedView, type ServedViewOptions } from './served-view.ts'
import type { Revisions } from './step-members.ts'
import { StepSlots } from './step-slots.ts'

export interface RouterOptions extends ServedViewOptions {
  /** Names this process, as the owner of the tensors that it holds. */
  readonly name: string
  /** A model version of a replica. */
  readonly replicas: { readonly executor: FindReplicaExecutor }
  /** Triton's `--strict-readiness`: ready only if every known version is. */
  readonly strictReadiness: boolean
  readonly tracing: Tracing
  readonly metrics: ServerMetrics
  /** Makes the key of a request; a random UUID and a count unless a test wants otherwise. */
  readonly newRequestKey?: () => string
  /** What bounds the requests that models make. */
  readonly nesting?: Partial<NestingBounds>
  /** Names of all models that could be loaded, for the index; absent if that is not known. */
  readonly listNames?: () => Promise<readonly string[]>
  /** A replica refused a revision that it was thought to serve: what is known of it is out of date. */
  readonly revisionRefused?: (replica: string) => void
}

/** The inference backend over step replicas and ensembles: looks to clients like one Triton server. */
export class Router implements InferenceBackend {
  readonly memory: TensorMemory
  /** Executes the requests that models in steps make to other models. */
  readonly nested: FindExecutor
  /** Answers what models in steps ask beside that. */
  readonly answer: AnswerQuestion
  readonly #o: RouterOptions
  readonly #view: ServedView
  readonly #recorders: EnsembleRecorders
  readonly #slots = new WeakMap<EnsemblePlan, readonly StepSlots[]>()
  readonly #execution: ExecutionDependencies
  readonly #calls: CallDependencies
  readonly #newRequestKey: () => string
  readonly #pins = new PinCounts()
  /** What clients asked for so far, of the models as they are now: requests ask for the same again and again. */
  #resolved = new Map<string, ResolvedModel>()
  #isLive = true
  #control: ModelControl | undefined

  constructor(o: RouterOptions) {
    this.#o = o
    this.#recorders = new EnsembleRecorders(o)
    this.memory = new TensorMemory(o.name)
    this.#view = new ServedView(o, (catalog) => {
      this.#resolved = new Map()
      this.#recorders.follow(catalog)
    })
    this.#calls = {
      replicas: o.replicas,
      directory: o.directory,
      clock: o.clock,
      tracing: o.tracing,
      metrics: o.metrics,
      liveRevisions: (model, version) => this.#view.liveRevisions(model, version),
      revisionRefused: (replica) => o.revisionRefused?.(replica),
    }
    this.#execution = {
      clock: o.clock,
      memory: this.memory,
      admission: new EnsembleAdmission(),
      slots: (plan) => this.#slotsOf(plan),
      invoke: (invocation, sink) => this.#invoke(invocation, sink),
    }
    this.nested = createNestedExecutors({
      bounds: { ...NESTING_DEFAULTS, ...o.nesting },
      clock: o.clock,
      resolve: (model, version) => this.#resolveNested(model, version),
    })
    this.answer = createRouterAnswers({
      isModelReady: (model, version) => this.isModelReady(model, version),
      isUnpinned: (replica, pin) => this.#isUnpinned(replica, pin),
    })
    this.#newRequestKey = o.newRequestKey ?? requestKeys()
  }

  /** Asks a step what it serves, and learns it or learns it anew. */
  async addStep(control: StepControl): Promise<void> {
    this.stepDescribed(await control.describe(), control)
  }

  /**
   * Learns what a step serves.
   *
   * @param retired - what it executes besides, for requests that pinned it before it was replaced.
   */
  stepDescribed(description: StepDescription, control: StepControl, retired?: Revisions): void {
    this.#view.describe(description, control, retired)
  }

  /** From now on these are the ensembles; those that are unloaded among them are only listed. */
  setEnsembles(ensembles: readonly EnsembleSource[]): void {
    this.#view.setEnsembles(ensembles)
  }

  /** From now on this is what was accepted, ensembles included; for a router that serves only that. */
  setAccepted(accepted: AcceptedSet): void {
    this.#view.setAccepted(accepted)
  }

  /** What requests reach now, for the operator. */
  get served(): ServedByRouter {
    return this.#view.served
  }

  /** As they were set last. */
  get ensembles(): readonly EnsembleSource[] {
    return this.#view.ensembles
  }

  /** What clients load and unload with; undefined where they may not. */
  get control(): ModelControl | undefined {
    return this.#control
  }

  allowControl(control: ModelControl): void {
    this.#control = control
  }

  /** What is known of a model or ensemble now. */
  find(name: string): CatalogModel | CatalogEnsemble | undefined {
    return this.#view.catalog.models.get(name)
  }

  /** Resolves once no request in flight uses the version, in whichever step of an ensemble. */
  whenUnpinned(pin: PinnedVersion): Promise<void> {
    return this.#pins.whenUnpinned(pin)
  }

  /** Takes from a heartbeat what a step takes work for now; what it is comes with its description. */
  stepAnnounced(replica: string, revisions: Revisions): void {
    this.#view.announce(replica, revisions)
  }

  /** The step is gone; what is in flight there is the transport's to fail. */
  removeStep(replica: string): void {
    this.#view.remove(replica)
  }

  /** From now on the server is not live: health says so, and the servers refuse new requests. */
  stop(): void {
    this.#isLive = false
  }

  isLive(): boolean {
    return this.#isLive
  }

  isReady(): boolean {
    return this.#isLive && (!this.#o.strictReadiness || this.#view.areAllReady())
  }

  isModelReady(name: string, version: string): Promise<boolean> {
    return this.#view.isModelReady(name, version)
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
    const { catalog } = this.#view
    const resolved = this.#view.lookup(name, version)
    const { config, labels } = resolved
    return {
      name,
      version: resolved.version.version,
      config,
      isDecoupled: isDecoupled(config),
      labels: (output) => labels[output],
      execute: (request, sink, context) =>
        this.#execute({ catalog, resolved, sink, context }, request),
    }
  }

  #resolveNested(name: string, version: string): NestedTarget {
    const { catalog } = this.#view
    const resolved = this.#view.lookup(name, version)
    return {
      isDecoupled: isDecoupled(resolved.config),
      execute: (request, sink, context, callers) =>
        this.#execute({ catalog, resolved, sink, context, callers }, request),
    }
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const { entry, config, version: found } = this.#view.lookup(name, version)
    return modelMetadata(config, version === '' ? readyVersions(entry) : [found.version])
  }

  statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    return collectStatistics(this.#view.controls, this.#recorders.all, name, version)
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    const listed = toIndex(this.#view.entries, readyOnly)
    if (readyOnly || this.#o.listNames === undefined) return listed
    return withNames(listed, await this.#o.listNames())
  }

  #execute(
    o: {
      readonly catalog: Catalog
      readonly resolved: ResolvedEntry
      readonly sink: ResponseSink
      readonly context: CallContext
      readonly callers?: readonly string[]
    },
    request: InferRequest,
  ): void {
    const { catalog, resolved, sink, context, callers } = o
    const release = this.#pins.hold(resolved, catalog)
    const own = toScope(context, this.#newRequestKey(), catalog, release)
    const scope = callers === undefined ? own : { ...own, callers }
    if (resolved.entry.kind === 'model') {
      return inferModel(this.#calls, resolved, request, sink, scope)
    }
    const recorder = this.#recorders.get(resolved.entry.name, resolved.version.version)
    const ensembles = { ...this.#execution, tracing: this.#o.tracing, recorder }
    inferEnsemble(ensembles, resolved, request, sink, scope)
  }

  #invoke(invocation: StepInvocation, sink: ResponseSink): void {
    const { entry, version } = invocation.target
    if (entry.kind === 'ensemble') return executeNested(this.#execution, invocation, sink)
    const call = {
      ...invocation,
      model: entry.name,
      version: version.version,
      revision: version.revision,
      signature: version.revisions[0]?.signature ?? '',
      outputs: invocation.requestedOutputs,
    }
    callModel(this.#calls, call, invocation, sink)
  }

  /** Whether a step may close a version that it has replaced: nothing new comes for it here, and what came is over. */
  #isUnpinned(replica: string, pin: PinnedVersion): boolean {
    const { model, version, revision } = pin
    // The question may be faster than the description that says so.
    if (this.#view.offers(replica, pin)) return false
    // Where others serve the revision, they take what is left.
    const live = this.#view.liveRevisions(model, version)
    return live.some((other) => other.revision === revision) || !this.#pins.isPinned(pin)
  }

  #slotsOf(plan: EnsemblePlan): readonly StepSlots[] {
    const known = this.#slots.get(plan)
    if (known !== undefined) return known
    const slots = plan.steps.map(() => new StepSlots(plan.stepSlots.maxInflightRequests))
    this.#slots.set(plan, slots)
    return slots
  }
}

/** Keys that no other process makes: a random UUID for each request would cost more than the rest of its scope. */
function requestKeys(): () => string {
  const prefix = randomUUID()
  let count = 0
  return () => `${prefix}-${count++}`
}

function toScope(
  context: CallContext,
  requestKey: string,
  catalog: Catalog,
  release: () => void,
): RequestScope {
  const { signal, deadlineAt, trace } = context
  // Most requests have neither, and objects of one shape are cheaper to read.
  const pins = new RevisionPins()
  if (deadlineAt === undefined && trace === undefined) {
    return { signal, requestKey, catalog, pins, release }
  }
  return { ...context, requestKey, catalog, pins, release }
}
