import { mergeStatistics, type PinnedVersion } from '@tutti/api'
import type { Tracing } from '@tutti/chassis'
import type {
  ConsoleModel,
  ConsoleReplica,
  ConsoleSource,
  OtherRouter,
  ReplicaTotals,
  WaitOptions,
} from '@tutti/console'
import { type ModelMetadata, type ModelStatistics, modelMetadata } from '@tutti/model-config'
import { type ResponseCache } from '@tutti/response-cache'
import {
  type IndexEntry,
  type InferenceBackend,
  type ModelControl,
  observeModel,
  type ResolvedModel,
  readyVersions,
  selectStatistics,
  toIndex,
  withNames,
} from '@tutti/serving'
import {
  type CaptureState,
  joinObservers,
  logObserverFailures,
  RequestCaptures,
  type ServerMetrics,
  type StepTotals,
} from '@tutti/telemetry'
import type { FindExecutor, RequestObserver } from '@tutti/tensor'
import type { AnswerQuestion } from '@tutti/transport'
import { HeldCalls } from './calls/held-calls.ts'
import { PinnedRequests } from './calls/pinned-requests.ts'
import { ReplicaCounts } from './calls/replica-counts.ts'
import type { ReplicaCalls, RequestDependencies } from './calls/request-dependencies.ts'
import { SequenceRoutes } from './calls/sequence-routes.ts'
import type { ResolvedEntry } from './catalog/catalog.ts'
import { countNested } from './requests/count-nested.ts'
import { createEnsembleCache } from './requests/ensemble-cache.ts'
import { EnsembleRecorders } from './requests/ensemble-recorders.ts'
import {
  createNestedExecutors,
  NESTING_DEFAULTS,
  type NestingBounds,
} from './requests/nested-requests.ts'
import { Requests } from './requests/requests.ts'
import { createRouterAnswers } from './router-answers.ts'
import { ServedView, type ServedViewOptions } from './view/served-view.ts'

export interface RouterOptions extends ServedViewOptions {
  readonly replicas: ReplicaCalls
  /** Triton's `--strict-readiness`: ready only if every known version is. */
  readonly strictReadiness: boolean
  readonly tracing: Tracing
  readonly metrics: ServerMetrics
  /** Draws the waits between attempts; Math.random if absent. */
  readonly random?: () => number
  /** Cache of ensembles; closed by its owner. */
  readonly cache?: ResponseCache | undefined
  /** Bounds of the requests that models make. */
  readonly nesting?: Partial<NestingBounds>
  /**
   * Lists the names of all models that could be loaded, for the index; absent, or resolves to undefined, if they are not known.
   */
  readonly listNames?: () => Promise<readonly string[] | undefined>
  /**
   * Called when a replica refuses a revision that it was thought to serve, because the router's knowledge of the replica is out
   * of date.
   */
  readonly revisionRefused?: (replica: string) => void
  /** Returns the control by which clients load and unload; undefined, or absent, if they may not. */
  readonly control?: () => ModelControl | undefined
  /** Most calls that wait for the first replicas of Models. Default 1024. */
  readonly maxHeldCalls?: number
  /** Called when the Models for which calls wait may have changed; see `wantedModels`. */
  readonly wantedChanged?: () => void
  /** Memory regions that clients share with the router; absent if they may not share any. */
  readonly regions?: InferenceBackend['regions']
  /** Tells the console how a replica is reached; absent if all replicas are in this process. */
  readonly reachedOver?: (replica: string) => string
  /** Lists the other routers of the repository, for the console. */
  readonly otherRouters?: () => readonly OtherRouter[]
}

/** A call that waits holds its request, whose bytes count where those of all requests do. */
const MAX_HELD_CALLS = 1024

/** Most questions to a step at a time, for the console. For more models one question asks for all. */
const MAX_QUESTIONS = 8

/**
 * The inference backend over step replicas and ensembles. To clients it looks like one Triton server. `view` decides what it
 * serves, and `Requests` executes the requests.
 */
export class Router implements InferenceBackend, ConsoleSource {
  /** Tensors that ensemble runs hold, and their bytes: zero when no request is in flight. */
  readonly memory = { count: 0, bytesInUse: 0 }
  /** Routes of sequences to the replicas that have their state. */
  readonly sequences: SequenceRoutes
  /** The view of what is served; it takes the changes of steps, ensembles and accepted resources. */
  readonly view: ServedView
  /** Executes the requests that models in steps make to other models. */
  readonly nested: FindExecutor
  /** Answers the other questions of steps. */
  readonly answer: AnswerQuestion
  readonly #options: RouterOptions
  readonly #recorders: EnsembleRecorders
  readonly #pinned = new PinnedRequests()
  readonly #replicaCounts: ReplicaCounts
  readonly #held: HeldCalls
  readonly #requests: Requests
  readonly #captures: RequestCaptures
  readonly #observer: RequestObserver | undefined
  #isLive = true
  /** Pages wait for requests. */
  #isWatched = false

  constructor(o: RouterOptions) {
    this.#options = o
    this.#replicaCounts = new ReplicaCounts(o.clock)
    this.sequences = new SequenceRoutes(o)
    this.#recorders = new EnsembleRecorders(o)
    this.#held = this.#openHeld()
    const requests = this.#openRequests()
    this.#requests = requests
    this.#captures = new RequestCaptures(o.clock, (isWaiting) => {
      this.#isWatched = isWaiting
    })
    this.#observer = joinObservers([this.#captures], logObserverFailures(o.log, o))
    this.view = new ServedView(o, (catalog) => {
      requests.forget()
      this.#recorders.follow(catalog)
      this.#held.review()
    })
    this.nested = createNestedExecutors({
      bounds: { ...NESTING_DEFAULTS, ...o.nesting },
      clock: o.clock,
      resolve: requests.resolve,
    })
    this.answer = createRouterAnswers({
      isModelReady: (model, version) => this.isModelReady(model, version),
      isUnpinned: (replica, pin) => this.#isUnpinned(replica, pin),
    })
  }

  #openHeld(): HeldCalls {
    const { clock, maxHeldCalls = MAX_HELD_CALLS, wantedChanged } = this.#options
    return new HeldCalls({
      clock,
      most: maxHeldCalls,
      changed: wantedChanged ?? (() => {}),
      sleepOf: ({ model, version }) => this.view.sleepOf(model, version),
      isAsleep: (model) => this.view.isAsleep(model),
      faultOf: ({ model, version }) => this.view.faultOf(model, version),
    })
  }

  /** Lists the Models without a replica for which calls wait, and those behind them in the graphs, by name. */
  wantedModels(): readonly string[] {
    return this.#held.wanted()
  }

  #openRequests(): Requests {
    const { tracing, revisionRefused = () => {}, cache, ...o } = this.#options
    const observersOf = ({ entry, version }: ResolvedEntry) =>
      this.#recorders.find(entry.name, version.version)
    const { clock } = o
    const shared: RequestDependencies = {
      random: Math.random,
      ...o,
      ...(cache && {
        cache: createEnsembleCache(cache, {
          cacheObserverOf: (ensemble) => observersOf(ensemble)?.cacheObserver,
          clock,
        }),
      }),
      memory: this.memory,
      inFlight: new Map(),
      pinned: this.#pinned,
      replicaCounts: this.#replicaCounts,
      held: this.#held,
      sequences: this.sequences,
      tracing: tracing.isEnabled ? tracing : undefined,
      lookup: (name, version) => this.view.lookup(name, version),
      liveRevisions: (model, version) => this.view.liveRevisions(model, version),
      observerOf: (ensemble) => observersOf(ensemble)?.observer,
      revisionRefused,
      countNested: (call, sink) => countNested(shared, call, sink),
    }
    return new Requests(shared)
  }

  /**
   * Finds the model that a request executes. All requests come this way.
   *
   * @throws ServeError with Triton's look-up texts.
   */
  resolve(name: string, version: string): ResolvedModel {
    const model = this.#requests.resolve(name, version)
    const observer = this.#isWatched ? this.#observer : undefined
    return observer ? observeModel(model, observer, this.#options) : model
  }

  get control(): ModelControl | undefined {
    return this.#options.control?.()
  }

  get regions(): InferenceBackend['regions'] {
    return this.#options.regions
  }

  /** Waits until no request in flight uses the version, in any step of an ensemble. */
  whenUnpinned(pin: PinnedVersion): Promise<void> {
    return this.#pinned.whenUnpinned(pin)
  }

  /** Stops the router: health is not live from now on, and the servers refuse new requests. */
  stop(): void {
    this.#isLive = false
  }

  isLive(): boolean {
    return this.#isLive
  }

  isReady(): boolean {
    return this.#isLive && (!this.#options.strictReadiness || this.view.areAllReady())
  }

  isModelReady(name: string, version: string): Promise<boolean> {
    return this.view.isModelReady(name, version)
  }

  /** Finds a model for the console, whether it is ready or not. */
  find(name: string): ConsoleModel | undefined {
    const found = this.view.find(name)
    if (found?.kind !== 'ensemble' || found.config !== undefined) return found
    // It lacks what its models would say, and shows its steps all the same.
    const config = this.view.ensembles.find((one) => one.name === name)?.definition?.config
    return config === undefined ? found : { ...found, config }
  }

  /**
   * Notes, for the console, that a page waits for the next request of a model, whichever way it comes. Returns what was caught
   * so far.
   */
  waitForRequest(o: WaitOptions): CaptureState {
    const { page, turn, wanted } = o
    return this.#captures.wait(page, turn, wanted)
  }

  stopWaiting({ page, turn }: Pick<WaitOptions, 'page' | 'turn'>): void {
    this.#captures.stop(page, turn)
  }

  /** Returns the totals of each step of an ensemble, for the console. */
  stepTotals(ensemble: string): readonly StepTotals[] {
    return this.#options.metrics.stepTotals(ensemble)
  }

  /** Lists, for the console, the replicas of models, and why a model does not run there. */
  replicasOf(models: ReadonlySet<string>): readonly ConsoleReplica[] {
    return this.view.replicasOf(models, this.#options.reachedOver ?? (() => 'this process'))
  }

  /** Returns, for the console, the times of step calls at each replica since a page looks. */
  replicaTotals(): readonly ReplicaTotals[] {
    return this.#replicaCounts.read()
  }

  otherRouters(): readonly OtherRouter[] {
    return this.#options.otherRouters?.() ?? []
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const { entry, config, version: found } = this.view.lookup(name, version)
    return modelMetadata(config, version === '' ? readyVersions(entry) : [found.version])
  }

  /**
   * Returns the statistics of models and ensembles. The steps are asked for their models, and the answers of replicas are added
   * up. Ensembles are recorded here.
   *
   * @throws ServeError of a step that does not answer, because a sum without its counts would go backwards.
   */
  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    return selectStatistics(await this.#ask([name]), name, version)
  }

  /** Returns the statistics of several models, for the console. Models that are not known are left out. */
  async statisticsOf(names: ReadonlySet<string>): Promise<readonly ModelStatistics[]> {
    const all = await this.#ask([...names])
    return all.filter(({ name }) => names.has(name))
  }

  /** @param names - '' is all. A step is asked for no others than it serves. */
  async #ask(names: readonly string[]): Promise<readonly ModelStatistics[]> {
    const questions = this.view.controls.flatMap(({ control, models }) => {
      const known = names.filter((name) => name === '' || models.has(name))
      const asked = known.length > MAX_QUESTIONS ? [''] : known
      return asked.map((name) => control.statistics(name, ''))
    })
    const own = this.#recorders.all.map((recorder) => recorder.snapshot())
    return [...mergeStatistics(await Promise.all(questions)), ...own]
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    const listed = toIndex(this.view.entries, readyOnly)
    const names = readyOnly ? undefined : await this.#options.listNames?.()
    return names === undefined ? listed : withNames(listed, names)
  }

  /**
   * Tells whether a step may close a version that it has replaced: this router sends nothing new to it, and its requests are
   * over.
   */
  #isUnpinned(replica: string, pin: PinnedVersion): boolean {
    const { model, version, revision } = pin
    // The question may be faster than the description without the version.
    if (this.view.offers(replica, pin)) return false
    // Where others serve the revision, they take what is left.
    const live = this.view.liveRevisions(model, version)
    return (
      live.some((one) => one.revision === revision && one.replicas > 0) ||
      !this.#pinned.isPinned(pin)
    )
  }
}
