import type { PinnedVersion, SleepMark, StepDescription } from '@tutti/api'
import { BUILTIN_HOST } from '@tutti/builtins'
import type { Clock, Logger } from '@tutti/chassis'
import type { ConsoleReplica } from '@tutti/console'
import { type Reason, ServeError } from '@tutti/errors'
import { areAllReady } from '@tutti/serving'
import type { ForeignMember, StepDirectory } from '@tutti/transport'
import { Acceptance } from '../accepted/acceptance.ts'
import { type AcceptedSet, NOTHING_ACCEPTED } from '../accepted/accepted-set.ts'
import { type ServedInside, toServed } from '../accepted/to-served.ts'
import { buildCatalog } from '../catalog/build-catalog.ts'
import {
  type Catalog,
  type CatalogEnsemble,
  type CatalogModel,
  type CatalogVersion,
  EMPTY_CATALOG,
  type LiveRevision,
  listedEntries,
  lookupModel,
  noStepYet,
  onlyForeign,
  type ResolvedEntry,
} from '../catalog/catalog.ts'
import type { EnsembleSource } from '../catalog/ensemble-source.ts'
import { catalogChanged } from '../log-events.ts'
import { listReplicas } from './console-replicas.ts'
import { type Revisions, StepMembers, type StepQuestions } from './step-members.ts'

export interface ServedViewOptions {
  readonly directory: StepDirectory
  readonly ensembles: readonly EnsembleSource[]
  /**
   * True if steps come and go. With strict readiness the router is then not ready while an ensemble lacks a model that a step
   * may bring.
   */
  readonly awaitsSteps?: boolean
  /** Tells whether the router has heard all steps that are there. Until then, an unknown model may well exist. */
  readonly hasHeardSteps?: () => boolean
  /** Lists the steps that this router cannot call, because they share no protocol version with it. */
  readonly foreignSteps?: () => readonly ForeignMember[]
  /** True if an ensemble that is no longer valid is listed as unloaded, as in the modes that change what is served. */
  readonly takesDown?: boolean
  /** True if only resources that an operator has accepted are served: nothing before `setAccepted`. */
  readonly servesAccepted?: boolean
  readonly clock: Clock
  readonly log: Logger
}

/** Why a lookup of a model that is not ready fails. */
const NOT_READY: ReadonlySet<Reason> = new Set<Reason>([
  'MODEL_NOT_FOUND',
  'MODEL_NOT_READY',
  'STEP_UNAVAILABLE',
  'SERVER_NOT_READY',
])

/**
 * The models and ensembles that a router serves. It joins the descriptions and announcements of replicas, the ensembles, and
 * the accepted resources into one catalog, and builds the catalog anew whenever one of them changes.
 */
export class ServedView {
  readonly #options: ServedViewOptions
  readonly #changed: (catalog: Catalog) => void
  readonly #members: StepMembers
  readonly #acceptance: Acceptance | undefined
  #ensembles: readonly EnsembleSource[]
  #catalog: Catalog = EMPTY_CATALOG

  /** @param changed - called with every new catalog, before anything that waits for it. */
  constructor(o: ServedViewOptions, changed: (catalog: Catalog) => void) {
    this.#options = o
    this.#changed = changed
    this.#ensembles = o.ensembles
    this.#acceptance = o.servesAccepted === true ? new Acceptance(o) : undefined
    this.#members = new StepMembers(o.directory, this.#acceptance)
    // Ensembles that wait for their models are there from the start.
    if (o.awaitsSteps === true) this.#rebuild()
  }

  /** Finds what is known of a model or ensemble now. */
  find(name: string): CatalogModel | CatalogEnsemble | undefined {
    return name === BUILTIN_HOST ? undefined : this.#catalog.models.get(name)
  }

  /** Ensembles as they were set last. */
  get ensembles(): readonly EnsembleSource[] {
    return this.#ensembles
  }

  /** Controls for questions to every replica that was described. */
  get controls(): StepMembers['controls'] {
    return this.#members.controls
  }

  /**
   * Lists the replicas that know some of the models, for the console.
   *
   * @param reachedOver - tells how a replica is reached.
   */
  replicasOf(
    models: ReadonlySet<string>,
    reachedOver: (replica: string) => string,
  ): readonly ConsoleReplica[] {
    const { directory } = this.#options
    const members = this.#members
    return listReplicas(models, { members, directory, foreign: this.#foreign, reachedOver })
  }

  /** Lists what clients may know of. */
  get entries(): readonly (CatalogModel | CatalogEnsemble)[] {
    return listedEntries(this.#catalog)
  }

  /** Models and ensembles by name, BUILTIN_HOST among them; a new map after every change. */
  get models(): Catalog['models'] {
    return this.#catalog.models
  }

  /** True if every revision that was accepted has a live replica. */
  get isAcceptedServed(): boolean {
    const { models, ensembles } = this.#acceptance?.accepted ?? NOTHING_ACCEPTED
    const count = [...models.values()].reduce((sum, all) => sum + all.length, ensembles.length)
    return this.served.accepted.length === count
  }

  /** Models and revisions that requests reach now, for the operator. */
  get served(): ServedInside {
    return toServed(this.#catalog, this.#acceptance?.accepted ?? NOTHING_ACCEPTED)
  }

  get #foreign(): readonly ForeignMember[] {
    return this.#options.foreignSteps?.() ?? []
  }

  /**
   * Takes the description of a step.
   *
   * @param retired - replaced versions that the step still executes, for requests that pinned them.
   */
  describe(description: StepDescription, control: StepQuestions, retired?: Revisions): void {
    this.#members.describe(description, control, retired)
    this.#rebuild()
  }

  /** Takes from a heartbeat the revisions for which a step takes work now. Their details come with its description. */
  announce(replica: string, revisions: Revisions): void {
    if (this.#members.announce(replica, revisions)) this.#rebuild()
  }

  /** Removes a step that is gone. The transport fails the requests that are in flight there. */
  remove(replica: string): void {
    if (this.#members.remove(replica)) this.#rebuild()
  }

  /** Replaces the ensembles. Unloaded ensembles among them are only listed. */
  setEnsembles(ensembles: readonly EnsembleSource[]): void {
    this.#ensembles = ensembles
    this.#rebuild()
  }

  /** Replaces the accepted resources, with the ensembles among them. */
  setAccepted(accepted: AcceptedSet): void {
    this.#acceptance?.set(accepted)
    this.#members.review()
    this.setEnsembles(accepted.ensembles.map(({ source }) => source))
  }

  /** Tells whether a replica takes new requests for a version. */
  offers(replica: string, version: PinnedVersion): boolean {
    return this.#members.offers(replica, version)
  }

  /** Lists the revisions that are served under a model version now, the best first. */
  liveRevisions(model: string, version: number): readonly LiveRevision[] {
    return this.#versionOf(model, version)?.revisions ?? []
  }

  /** Finds the terms under which requests for a model version wait for its first replica; undefined if they do not wait. */
  sleepOf(model: string, version: number): SleepMark | undefined {
    return this.#versionOf(model, version)?.sleep
  }

  /** Finds the reason that a replica gives for a version that it does not serve; undefined if there is none. */
  faultOf(model: string, version: number): string | undefined {
    const found = this.#versionOf(model, version)
    const isFault = found?.state === 'UNAVAILABLE' && found.lost === undefined
    return isFault ? found.reason : undefined
  }

  #versionOf(model: string, version: number): CatalogVersion | undefined {
    return this.#catalog.models.get(model)?.versions.find((one) => one.version === version)
  }

  /** Tells whether a model has a version for which requests wait. */
  isAsleep(model: string): boolean {
    return this.#catalog.models.get(model)?.versions.some((v) => v.sleep !== undefined) ?? false
  }

  /**
   * Finds the version that a request for `name` gets.
   *
   * @param version - as the client wrote it.
   * @throws ServeError as `lookupModel`; SERVER_NOT_READY or STEP_UNAVAILABLE for a model that may yet come.
   */
  lookup(name: string, version: string): ResolvedEntry {
    try {
      return lookupModel(this.#catalog, name, version)
    } catch (cause) {
      const error = this.#explainForeign(ServeError.from(cause), name)
      if (error.reason !== 'MODEL_NOT_FOUND') throw error
      if (this.#options.hasHeardSteps?.() !== false) throw this.#unknown(error, name)
      const text = `model '${name}' is not known yet: this router has not heard the steps`
      throw new ServeError('SERVER_NOT_READY', text, { details: { model: name }, cause })
    }
  }

  /** Tells whether a replica is ready for requests to a model. A model that reports its own readiness is asked. */
  async isModelReady(name: string, version: string): Promise<boolean> {
    try {
      const { entry, version: found } = this.lookup(name, version)
      return entry.kind !== 'model' || (await this.#members.isReady(name, found))
    } catch (error) {
      const { reason } = ServeError.from(error)
      if (NOT_READY.has(reason)) return false
      throw error
    }
  }

  /** Tells whether the router is ready in Triton's strict sense: no ensemble waits, and every known version is ready. */
  areAllReady(): boolean {
    const { entries } = this
    if (this.#options.awaitsSteps === true && entries.some(isWaiting)) return false
    return areAllReady(entries)
  }

  /**
   * Explains an error. A model that only steps of another protocol version serve is not unknown: another router, or this one
   * upgraded, can use it.
   */
  #explainForeign(error: ServeError, name: string): ServeError {
    if (error.reason !== 'MODEL_NOT_FOUND' && error.reason !== 'STEP_UNAVAILABLE') return error
    const entry = this.#catalog.models.get(name)
    const missing = entry?.kind === 'ensemble' ? entry.missing : []
    const wanted = [name, ...missing, error.details.model]
    const foreign = this.#foreign.find(({ models }) => models.some((one) => wanted.includes(one)))
    return foreign === undefined ? error : onlyForeign(error, foreign)
  }

  #unknown(error: ServeError, name: string): ServeError {
    const entry = this.#catalog.models.get(name)
    if (entry?.kind !== 'ensemble' || entry.missing.length === 0) return error
    return this.#options.awaitsSteps === true ? noStepYet(error, entry) : error
  }

  #rebuild(): void {
    const previous = this.#catalog
    const { log, takesDown = false, awaitsSteps = false } = this.#options
    const acceptance = this.#acceptance
    this.#catalog = buildCatalog(this.#members.described, this.#ensembles, {
      previous,
      takesDown,
      ...(acceptance !== undefined && { lost: (find) => acceptance.lost(find) }),
    })
    this.#changed(this.#catalog)
    catalogChanged(log, this.#catalog, previous, { awaitsSteps })
  }
}

function isWaiting(entry: CatalogModel | CatalogEnsemble): boolean {
  return entry.kind === 'ensemble' && entry.isWaiting
}
