import type {
  ConsoleModel,
  ConsoleReplica,
  ConsoleSource,
  ReplicaTotals,
  WaitOptions,
} from '@tutti/console'
import { ServeError } from '@tutti/errors'
import {
  type ModelConfig,
  type ModelMetadata,
  type ModelStatistics,
  plainName,
  qualifyName,
  renameStepModels,
  resolveName,
  splitName,
} from '@tutti/model-config'
import { checkModelName, type ModelRepository } from '@tutti/repository'
import {
  type IndexEntry,
  type InferenceBackend,
  isUnloadedReason,
  type LoadParameters,
  type ModelControl,
  type ResolvedModel,
  requireControl,
  selectStatistics,
} from '@tutti/serving'
import { type CaptureState, type StepTotals } from '@tutti/telemetry'
import type { Catalog, CatalogEnsemble, CatalogModel } from './catalog/catalog.ts'
import type { Router } from './router.ts'

export interface NamespacedSource {
  /** Router that knows models by their qualified names. */
  readonly router: Router
  readonly repository: Pick<ModelRepository, 'names' | 'hasListed'>
}

/**
 * The models of a router as clients see them with `--model-namespacing`: by plain names, while the router knows them as
 * `<repository>::<name>`. A name that models of several repositories have is refused, with Triton's text. A load or unload
 * applies to all models with the name.
 */
export class NamespacedModels implements InferenceBackend, ConsoleSource {
  readonly #router: Router
  readonly #repository: NamespacedSource['repository']
  readonly #control: ModelControl = {
    load: (name, parameters) => this.#load(name, parameters),
    unload: (name, o) => this.#unload(name, o),
  }
  /** Models of which `#byName` was made. */
  #models: Catalog['models'] = new Map()
  #byName = new Map<string, string[]>()
  readonly #shown = new WeakMap<ModelConfig, ModelConfig>()

  constructor({ router, repository }: NamespacedSource) {
    this.#router = router
    this.#repository = repository
  }

  /**
   * Finds the model that another model refers to by a plain name. A model of the caller's own repository, loaded or not, comes
   * before any other.
   *
   * @param caller - qualified name of the model that refers to `model`.
   */
  resolveFrom(caller: string, model: string): string {
    const namespace = splitName(caller)?.namespace ?? ''
    const own = qualifyName(namespace, model)
    if (this.#repository.hasListed(own)) return own
    return resolveName(this.#qualified(model), namespace, model)
  }

  get control(): ModelControl | undefined {
    return this.#router.control && this.#control
  }

  get regions(): InferenceBackend['regions'] {
    return this.#router.regions
  }

  isLive(): boolean {
    return this.#router.isLive()
  }

  isReady(): boolean {
    return this.#router.isReady()
  }

  async isModelReady(name: string, version: string): Promise<boolean> {
    if (this.#qualified(name).length > 1) return false
    return await this.#router.isModelReady(this.#find(name), version)
  }

  resolve(name: string, version: string): ResolvedModel {
    const model = this.#router.resolve(this.#find(name), version)
    return { ...model, name, config: this.#show(model.config) }
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    return this.#router.modelMetadata(this.#find(name), version)
  }

  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    const [only, ...others] = name === '' ? [''] : this.#qualified(name)
    if (only === undefined || others.length > 0) return selectStatistics([], name, version)
    const all = await this.#router.statistics(only, version)
    return all.map((one) => ({ ...one, name: plainName(one.name) }))
  }

  /** Finds a model for the console; returns undefined if none, or more than one, has the name. */
  find(name: string): ConsoleModel | undefined {
    const [only, ...others] = this.#qualified(name)
    if (only === undefined || others.length > 0) return undefined
    const found = this.#router.find(only)
    if (found?.config === undefined) return found && { ...found, name }
    return { ...found, name, config: this.#show(found.config) }
  }

  stepTotals(ensemble: string): readonly StepTotals[] {
    const [only, ...others] = this.#qualified(ensemble)
    return only === undefined || others.length > 0 ? [] : this.#router.stepTotals(only)
  }

  waitForRequest({ wanted, ...o }: WaitOptions): CaptureState {
    const model = this.#find(wanted.model)
    return this.#router.waitForRequest({ ...o, wanted: { ...wanted, model } })
  }

  stopWaiting(o: Pick<WaitOptions, 'page' | 'turn'>): void {
    this.#router.stopWaiting(o)
  }

  replicasOf(names: ReadonlySet<string>): readonly ConsoleReplica[] {
    const qualified = [...names].flatMap((name) => this.#qualified(name))
    return this.#router.replicasOf(new Set(qualified)).map((one) => ({
      ...one,
      versions: one.versions.map((v) => ({ ...v, model: plainName(v.model) })),
    }))
  }

  replicaTotals(): readonly ReplicaTotals[] {
    return this.#router.replicaTotals().map((one) => ({
      ...one,
      model: plainName(one.model),
      ensemble: plainName(one.ensemble),
    }))
  }

  otherRouters(): [] {
    return []
  }

  async statisticsOf(names: ReadonlySet<string>): Promise<readonly ModelStatistics[]> {
    const qualified = [...names].flatMap((name) => this.#qualified(name))
    const all = await this.#router.statisticsOf(new Set(qualified))
    return all.map((one) => ({ ...one, name: plainName(one.name) }))
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    const index = await this.#router.repositoryIndex(readyOnly)
    return index.map((one) => ({ ...one, name: plainName(one.name) }))
  }

  /** Lists the qualified names of models with a name, except unloaded ones. */
  #qualified(name: string): readonly string[] {
    const { models } = this.#router.view
    if (models !== this.#models) {
      this.#models = models
      const known = [...models.values()].filter((entry) => !isUnloaded(entry))
      this.#byName = Map.groupBy(
        known.map((entry) => entry.name),
        plainName,
      )
    }
    return this.#byName.get(name) ?? []
  }

  /** @throws ServeError MODEL_AMBIGUOUS; MODEL_NOT_FOUND for a qualified name, which only this process uses. */
  #find(name: string): string {
    const [only, ...others] = this.#qualified(name)
    if (others.length > 0) {
      const text = `There are ${others.length + 1} identifiers of model '${name}' in global map, model namespace must be provided to resolve ambiguity.`
      throw new ServeError('MODEL_AMBIGUOUS', text, { details: { model: name } })
    }
    if (splitName(name) === undefined) return only ?? name
    const text = `Request for unknown model: '${name}' is not found`
    throw new ServeError('MODEL_NOT_FOUND', text, { details: { model: name } })
  }

  /** Shows a configuration as it is written, with the namespaces of an ensemble's steps, which Triton adds too. */
  #show(config: ModelConfig): ModelConfig {
    const known = this.#shown.get(config)
    if (known !== undefined) return known
    const shown = renameStepModels(
      config,
      (model) => splitName(model) ?? { namespace: '', name: model },
    )
    this.#shown.set(config, shown)
    return shown
  }

  async #load(name: string, parameters: LoadParameters): Promise<void> {
    const control = requireControl(this.#router.control)
    const named = this.#named(name, await this.#repository.names())
    if (named.length === 0) return await control.load(name, parameters)
    const loads = await Promise.allSettled(named.map((one) => control.load(one, parameters)))
    const failures = loads.flatMap((load) =>
      load.status === 'rejected' ? [ServeError.from(load.reason)] : [],
    )
    const [first, ...others] = failures
    if (first === undefined) return
    if (others.length === 0) throw first
    const text = failures.map(({ message }) => message).join('\n')
    const { reason, code, details } = first
    throw new ServeError(reason, text, { code, details, cause: first })
  }

  async #unload(name: string, o: Parameters<ModelControl['unload']>[1]): Promise<void> {
    const control = requireControl(this.#router.control)
    const stored = await this.#repository.names().catch(() => [])
    await Promise.all(this.#named(name, stored).map((one) => control.unload(one, o)))
  }

  /**
   * Finds the models that are called so: what is just being loaded is not known yet, and what is known may no longer be stored.
   *
   * @throws ServeError INVALID_PARAMETER for a name that no model can have.
   */
  #named(name: string, stored: readonly string[]): readonly string[] {
    checkModelName(name)
    const named = stored.filter((one) => plainName(one) === name)
    return [...new Set([...named, ...this.#qualified(name)])]
  }
}

function isUnloaded(entry: CatalogModel | CatalogEnsemble): boolean {
  const { versions, reason } = entry
  if (versions.length === 0) return isUnloadedReason(reason)
  return versions.every((v) => v.state === 'UNLOADING' || isUnloadedReason(v.reason))
}
