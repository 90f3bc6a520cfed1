import type { Logger } from '@tutti/chassis'
import type { EnsembleRules } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import {
  type LoadParameters,
  loadFailed,
  loadOvertaken,
  type ModelControl,
  pollFailed,
  versionFailures,
} from '@tutti/front-door'
import type { ModelRepository, RepositoryChanges } from '@tutti/repository'
import { loadEnded, unloadRequested } from '../log-events.ts'
import type { Router } from '../router.ts'
import { dependenciesOf, EnsembleSet } from './ensemble-set.ts'
import type { ModelHosts } from './model-hosts.ts'
import { Operations } from './operations.ts'
import { type ReadEnsemble, type ReadModels, readModels } from './read-models.ts'

export interface RepositoryControlOptions {
  readonly router: Pick<Router, 'setEnsembles' | 'find'>
  /** Where ensembles are read; what is none there, or not there at all, is the hosts'. */
  readonly repository: Pick<ModelRepository, 'take' | 'names' | 'readConfig'>
  /** What manifests say of ensembles beyond their configurations, by name. */
  readonly rules?: ReadonlyMap<string, EnsembleRules> | undefined
  readonly hosts: ModelHosts
  readonly log: Logger
  /** Hears of every load and unload that took effect, and is waited for before the request is answered. */
  readonly changed?: (change: ControlChange) => Promise<void>
}

/** A load or unload of one name. */
export interface ControlChange {
  readonly name: string
  readonly isLoaded: boolean
  /** Asked for by name, not only because an ensemble is composed of it. */
  readonly isExplicit: boolean
  /** What came with the load of a model. */
  readonly parameters?: LoadParameters
  /** Set for an ensemble that is loaded. */
  readonly ensemble?: ReadEnsemble
}

/** Why models were not loaded, by name. */
export type LoadFailures = ReadonlyMap<string, ServeError>

/**
 * Loads and unloads models and ensembles (triton-semantics 3.3, 3.4, 1.11): an ensemble with all that it is composed of, a model
 * with what that does to the ensembles over it.
 */
export class RepositoryControl implements ModelControl {
  readonly #o: RepositoryControlOptions
  readonly #ensembles = new EnsembleSet()
  readonly #operations = new Operations()
  /** Asked for by name, not only because an ensemble is composed of them. */
  readonly #explicit = new Set<string>()
  /** Loaded with parameters: a load of an ensemble over them does not take these back. */
  readonly #overridden = new Set<string>()

  constructor(o: RepositoryControlOptions) {
    this.#o = o
  }

  /** Names of all models and ensembles that could be loaded, each once. */
  async names(): Promise<readonly string[]> {
    const { repository, hosts } = this.#o
    // What cannot be read now is not listed by name; what is known of it already is.
    const lists = await Promise.all([
      repository.names().catch(() => []),
      hosts.names().catch(() => []),
    ])
    return [...new Set(lists.flat())]
  }

  async load(name: string, parameters: LoadParameters): Promise<void> {
    const isOverridden = parameters.config !== undefined || parameters.files.size > 0
    const failures = await this.#load([name], isOverridden ? parameters : undefined)
    const failure = failures.get(name)
    loadEnded(this.#o.log, name, failure)
    if (failure !== undefined) throw failure
  }

  /**
   * Loads several models as they are on disk: at the start, or because they changed. Never rejects.
   *
   * @param o.isKept - tells of those too that cannot be loaded yet: who can may come later.
   */
  async loadAll(
    names: readonly string[],
    o: { readonly isKept?: boolean } = {},
  ): Promise<LoadFailures> {
    const failures = await this.#load(names, undefined, o.isKept)
    for (const name of names) loadEnded(this.#o.log, name, failures.get(name))
    return failures
  }

  /** Applies what a look at the repositories found. Never rejects. */
  async follow(changes: Pick<RepositoryChanges, 'changed' | 'removed'>): Promise<void> {
    for (const name of changes.removed) {
      await this.#unloadOne(name)
      this.#ensembles.delete(name)
    }
    this.#o.router.setEnsembles(this.#ensembles.sources)
    await this.loadAll(changes.changed)
  }

  /** Takes what another router did. The hosts have heard of it. */
  adopt(change: Omit<ControlChange, 'parameters'> & { readonly isOverridden: boolean }): void {
    const { name, ensemble } = change
    put(this.#explicit, name, change.isLoaded && change.isExplicit)
    put(this.#overridden, name, change.isLoaded && change.isOverridden)
    if (!change.isLoaded) {
      this.#operations.unload(name)
      this.#ensembles.unload(name)
    } else if (ensemble === undefined) this.#ensembles.delete(name)
    else this.#ensembles.add(ensemble.source, ensemble.digest)
    this.#o.router.setEnsembles(this.#ensembles.sources)
  }

  async unload(name: string, o: { readonly unloadDependents: boolean }): Promise<void> {
    unloadRequested(this.#o.log, name, o.unloadDependents)
    const queue = new Set(await this.#unloadOne(name))
    if (!o.unloadDependents) return
    for (const dependent of queue) {
      if (this.#explicit.has(dependent) || this.#ensembles.needs(dependent)) {
        // Another ensemble may go later in this loop, and this one with it.
        queue.delete(dependent)
        continue
      }
      for (const further of await this.#unloadOne(dependent)) queue.add(further)
    }
  }

  async #unloadOne(name: string): Promise<readonly string[]> {
    this.#explicit.delete(name)
    this.#overridden.delete(name)
    this.#operations.unload(name)
    let dependencies: readonly string[] = []
    if (this.#ensembles.has(name)) {
      dependencies = this.#ensembles.unload(name)
      this.#o.router.setEnsembles(this.#ensembles.sources)
    } else await this.#o.hosts.unload(name)
    await this.#tell({ name, isLoaded: false, isExplicit: true })
    return dependencies
  }

  async #load(
    names: readonly string[],
    parameters: LoadParameters | undefined,
    isKept = false,
  ): Promise<LoadFailures> {
    const operation = this.#operations.begin()
    for (const name of names) {
      this.#explicit.add(name)
      if (parameters === undefined) this.#overridden.delete(name)
      else this.#overridden.add(name)
    }
    try {
      const isEnsemble = (name: string): boolean => this.#ensembles.has(name)
      const read = await readModels(this.#o.repository, names, {
        parameters,
        isEnsemble,
        rules: this.#o.rules,
      })
      const failures = new Map(read.failures)
      await Promise.all(
        [...read.models].map(async (name) => {
          const own = names.includes(name) ? { parameters } : undefined
          const failure = await this.#loadModel(name, own, operation)
          if (failure !== undefined) failures.set(name, failure)
          if (failure === undefined || isKept) await this.#tellLoaded(name, own?.parameters)
        }),
      )
      await this.#commit(read, failures, operation)
      return this.#judge(names, read, failures)
    } finally {
      this.#operations.end()
    }
  }

  /** @param asked - absent for what only an ensemble needs. */
  async #loadModel(
    name: string,
    asked: { readonly parameters: LoadParameters | undefined } | undefined,
    operation: number,
  ): Promise<ServeError | undefined> {
    const { router, hosts } = this.#o
    if (this.#operations.isOvertaken(name, operation)) return loadOvertaken(name)
    const isKept = this.#overridden.has(name) && isReady(router.find(name))
    if (asked === undefined && isKept) return undefined
    try {
      await hosts.load(name, asked?.parameters)
    } catch (error) {
      return ServeError.from(error)
    }
    // The directory held an ensemble before.
    if (this.#ensembles.has(name)) this.#ensembles.delete(name)
    return undefined
  }

  /** Takes the ensembles that were read, unless something newer was applied to them meanwhile. */
  async #commit(
    read: ReadModels,
    failures: Map<string, ServeError>,
    operation: number,
  ): Promise<void> {
    for (const [name, ensemble] of read.ensembles) {
      if (this.#operations.isOvertaken(name, operation)) failures.set(name, loadOvertaken(name))
      else if (this.#operations.apply(name, operation)) this.#take(ensemble, failures)
    }
    const models = [...read.ensembles.keys()].filter(
      (name) => this.#ensembles.has(name) && this.#o.router.find(name)?.kind === 'model',
    )
    this.#o.router.setEnsembles(this.#ensembles.sources)
    // The directory held a model before.
    for (const name of models) await this.#o.hosts.unload(name)
    for (const [name, ensemble] of read.ensembles) {
      const isTaken = this.#ensembles.has(name) && !failures.has(name)
      const isExplicit = this.#explicit.has(name)
      if (isTaken) await this.#tell({ name, isLoaded: true, isExplicit, ensemble })
    }
  }

  async #tellLoaded(name: string, parameters: LoadParameters | undefined): Promise<void> {
    const isExplicit = this.#explicit.has(name)
    const own = parameters === undefined ? {} : { parameters }
    // What was loaded with parameters and is only needed by an ensemble was left as it is.
    if (parameters === undefined && this.#overridden.has(name)) return
    await this.#tell({ name, isLoaded: true, isExplicit, ...own })
  }

  async #tell(change: ControlChange): Promise<void> {
    await this.#o.changed?.(change)
  }

  #take({ source, digest }: ReadEnsemble, failures: Map<string, ServeError>): void {
    const { name, reason, lacksVersion } = source
    if (reason === '') {
      this.#ensembles.add(source, digest)
      return
    }
    const cause = new ServeError('CONFIG_INVALID', reason)
    failures.set(name, lacksVersion === true ? loadFailed(name, reason) : pollFailed(name, cause))
    // What is wanted stays as it was; what never was is listed with its reason.
    const known = this.#ensembles.get(name)
    if (known === undefined || known.reason !== '') this.#ensembles.add(source, digest)
  }

  /** What the request hears of the models that it named. */
  #judge(names: readonly string[], read: ReadModels, failures: LoadFailures): LoadFailures {
    const judged = new Map<string, ServeError>()
    for (const name of names) {
      const failure = failures.get(name) ?? this.#ensembleFailure(name, read, failures)
      if (failure !== undefined) judged.set(name, failure)
    }
    return judged
  }

  #ensembleFailure(name: string, read: ReadModels, failures: LoadFailures): ServeError | undefined {
    if (!read.ensembles.has(name)) return undefined
    const entry = this.#o.router.find(name)
    if (!isReady(entry)) return loadFailed(name, whyNot(entry))
    // As measured on Triton 2.51: what it is composed of serves on, but not as it is on disk.
    const stale = this.#closureOf(name).find(
      (model) => failures.get(model)?.reason === 'MODEL_POLL_FAILED',
    )
    const failure = stale === undefined ? undefined : failures.get(stale)
    return failure && pollFailed(name, ServeError.from(failure.cause ?? failure))
  }

  #closureOf(name: string): readonly string[] {
    const reached = new Set([name])
    for (const model of reached) {
      const source = this.#ensembles.get(model)
      for (const further of source === undefined ? [] : dependenciesOf(source)) reached.add(further)
    }
    return [...reached]
  }
}

function put(names: Set<string>, name: string, isIn: boolean): void {
  if (isIn) names.add(name)
  else names.delete(name)
}

type Entry = ReturnType<Router['find']>

function isReady(entry: Entry): boolean {
  return entry?.versions.some((version) => version.state === 'READY') ?? false
}

function whyNot(entry: Entry): string {
  if (entry === undefined) return 'it is not known any more'
  const cause = entry.kind === 'ensemble' ? entry.cause : undefined
  return cause ?? (entry.reason || versionFailures(entry.versions))
}
