import type { Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Graph } from '@tutti/graph'
import type { ModelRepository, RepositoryChanges } from '@tutti/repository'
import {
  type LoadParameters,
  loadFailed,
  loadOvertaken,
  type ModelControl,
  pollFailed,
  versionFailures,
} from '@tutti/serving'
import { hasReadyVersion } from '../catalog/catalog.ts'
import { ensembleStays, loadEnded, unloadRequested } from '../log-events.ts'
import type { ServedView } from '../view/served-view.ts'
import { dependenciesOf, EnsembleSet, type WantedEnsemble } from './ensemble-set.ts'
import { Operations } from './operations.ts'
import { type ReadModels, readModels } from './read-models.ts'

/** The hosts of the models that are not ensembles. */
export interface ModelHosts {
  /**
   * Loads a model. Resolves when the model is READY, at once if nothing changed.
   *
   * @throws ServeError with the texts of triton-semantics 3.3.
   */
  load(name: string, parameters?: LoadParameters): Promise<void>
  /** Unloads a model: it takes no new requests from now on. An unknown name is no error. */
  unload(name: string): Promise<void> | void
}

export interface ControlDependencies {
  readonly router: { readonly view: Pick<ServedView, 'setEnsembles' | 'find' | 'models'> }
  /** Repository of the ensembles. Models that are not ensembles there, or not there at all, are left to the hosts. */
  readonly repository: Pick<ModelRepository, 'take' | 'kindOf'>
  /** Graphs of the ensembles that manifests describe, by name. */
  readonly graphs?: ReadonlyMap<string, Graph> | undefined
  /** Hosts of the models that are not ensembles; absent if other processes load the models. */
  readonly hosts?: ModelHosts
  readonly log: Logger
}

/** The errors of models that were not loaded, by name. */
export type LoadFailures = ReadonlyMap<string, ServeError>

/**
 * Loads and unloads models and ensembles (triton-semantics 3.3, 3.4, 1.11). An ensemble is loaded with all models that it is
 * composed of. A load or unload of a model also changes the ensembles over it.
 */
export class RepositoryControl implements ModelControl {
  readonly #dependencies: ControlDependencies
  readonly #ensembles = new EnsembleSet()
  readonly #operations = new Operations()
  /** Asked for by name, not only because an ensemble is composed of them. */
  readonly #explicit = new Set<string>()
  /** Loaded with parameters: a load of an ensemble over them does not take these back. */
  readonly #overridden = new Set<string>()

  constructor(o: ControlDependencies) {
    this.#dependencies = o
  }

  async load(name: string, parameters: LoadParameters): Promise<void> {
    const isOverridden = parameters.config !== undefined || parameters.files.size > 0
    const failures = await this.#load([name], isOverridden ? parameters : undefined)
    const failure = failures.get(name)
    loadEnded(this.#dependencies.log, name, failure)
    if (failure !== undefined) throw failure
  }

  /** Tells whether an ensemble was loaded, valid or not at the moment. */
  knowsEnsemble(name: string): boolean {
    return this.#ensembles.has(name)
  }

  /** Loads several models as they are on disk: at the start, or because they changed. Never rejects. */
  async loadAll(names: readonly string[]): Promise<LoadFailures> {
    const failures = await this.#load(names, undefined)
    for (const name of names) loadEnded(this.#dependencies.log, name, failures.get(name))
    return failures
  }

  /** Applies the changes that a poll of the repositories found. Never rejects. */
  async follow(changes: Pick<RepositoryChanges, 'changed' | 'removed'>): Promise<void> {
    for (const name of changes.removed) {
      await this.#unloadOne(name)
      this.#ensembles.delete(name)
    }
    this.#dependencies.router.view.setEnsembles(this.#ensembles.sources)
    await this.loadAll(changes.changed)
  }

  async unload(name: string, o: { readonly unloadDependents: boolean }): Promise<void> {
    unloadRequested(this.#dependencies.log, name, o.unloadDependents)
    const queue = new Set(await this.#unloadOne(name))
    if (!o.unloadDependents) return
    for (const dependent of queue) {
      if (this.#explicit.has(dependent) || this.#isNeeded(dependent)) {
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
    if (!this.#ensembles.has(name)) {
      await this.#dependencies.hosts?.unload(name)
      return []
    }
    const { view } = this.#dependencies.router
    const dependencies = this.#ensembles.unload(name, view.find(name)?.config !== undefined)
    view.setEnsembles(this.#ensembles.sources)
    return dependencies
  }

  async #load(
    names: readonly string[],
    parameters: LoadParameters | undefined,
  ): Promise<LoadFailures> {
    const operation = this.#operations.begin()
    for (const name of names) {
      this.#explicit.add(name)
      if (parameters === undefined) this.#overridden.delete(name)
      else this.#overridden.add(name)
    }
    try {
      const read = await readModels(this.#dependencies.repository, names, {
        parameters,
        known: this.#ensembles,
        isAlone: this.#dependencies.hosts === undefined,
        graphs: this.#dependencies.graphs,
      })
      const failures = new Map(read.failures)
      await Promise.all(
        [...read.models].map(async (name) => {
          const own = names.includes(name) ? { parameters } : undefined
          const failure = await this.#loadModel(name, own, operation)
          if (failure !== undefined) failures.set(name, failure)
        }),
      )
      await this.#commit(read, failures, operation)
      return this.#failuresOf(names, read, failures)
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
    const { router, hosts } = this.#dependencies
    if (this.#operations.isOvertaken(name, operation)) return loadOvertaken(name)
    const isKept = this.#overridden.has(name) && hasReadyVersion(router.view.find(name))
    if (asked === undefined && isKept) return undefined
    try {
      await hosts?.load(name, asked?.parameters)
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
    for (const [name, { message, cause }] of read.failures) {
      if (!this.#operations.isOvertaken(name, operation)) {
        this.#refuse(name, cause instanceof ServeError ? cause.message : message)
      }
    }
    const models = [...read.ensembles.keys()].filter(
      (name) =>
        this.#ensembles.has(name) && this.#dependencies.router.view.find(name)?.kind === 'model',
    )
    this.#dependencies.router.view.setEnsembles(this.#ensembles.sources)
    // The directory held a model before.
    for (const name of models) await this.#dependencies.hosts?.unload(name)
  }

  #take(read: WantedEnsemble, failures: Map<string, ServeError>): void {
    const { name, reason, lacksVersion } = read.source
    if (reason === '') {
      this.#ensembles.add(read)
      return
    }
    const cause = new ServeError('CONFIG_INVALID', reason)
    failures.set(name, lacksVersion === true ? loadFailed(name, reason) : pollFailed(name, cause))
    // The wanted ensemble stays as it was; one that never was wanted is listed with its reason.
    const known = this.#ensembles.get(name)
    if (known === undefined || known.reason !== '') this.#ensembles.add(read)
    else ensembleStays(this.#dependencies.log, name, reason)
  }

  /**
   * Notes that an ensemble cannot be read: it stays as it is served. Without hosts, which would list it, it is listed with the
   * reason.
   */
  #refuse(name: string, reason: string): void {
    const { hosts, log } = this.#dependencies
    if (hosts === undefined && this.#ensembles.addUnreadable(name, reason)) return
    if (this.#ensembles.has(name)) ensembleStays(log, name, reason)
  }

  /** True if an ensemble is composed of the model: one that is wanted, or one that is served as it was before. */
  #isNeeded(model: string): boolean {
    if (this.#ensembles.needs(model)) return true
    return [...this.#dependencies.router.view.models.values()].some(
      (entry) =>
        entry.kind === 'ensemble' && entry.plan?.steps.some((step) => step.model === model),
    )
  }

  /** Lists the failures of the models that the request named. */
  #failuresOf(names: readonly string[], read: ReadModels, failures: LoadFailures): LoadFailures {
    const told = new Map<string, ServeError>()
    for (const name of names) {
      const failure = failures.get(name) ?? this.#ensembleFailure(name, read, failures)
      if (failure !== undefined) told.set(name, failure)
    }
    return told
  }

  #ensembleFailure(name: string, read: ReadModels, failures: LoadFailures): ServeError | undefined {
    if (!read.ensembles.has(name)) return undefined
    const entry = this.#dependencies.router.view.find(name)
    const pending = entry?.kind === 'ensemble' ? entry.pending : undefined
    if (pending !== undefined) return loadFailed(name, whyNot(pending))
    if (!hasReadyVersion(entry)) return loadFailed(name, whyNot(entry))
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

type Entry = ReturnType<ServedView['find']>

function whyNot(entry: Entry): string {
  if (entry === undefined) return 'it is not known any more'
  const cause = entry.kind === 'ensemble' ? entry.cause : undefined
  return cause ?? (entry.reason || versionFailures(entry.versions))
}
