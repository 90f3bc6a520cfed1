import type { ModelMetadata, ModelStatistics } from '@tutti/model-config'
import type { SharedRegions } from '@tutti/shared-memory'
import type { ClientShare } from '../admission/admission-ticket.ts'
import type { CallerIdentity } from './caller.ts'
import { decorateModel } from './decorate.ts'
import type {
  IndexEntry,
  InferenceBackend,
  ModelControl,
  ResolvedModel,
} from './inference-backend.ts'

/** A backend whose models are decorated; everything else is that of the backend within. */
export class DecoratedBackend implements InferenceBackend {
  readonly #backend: InferenceBackend
  readonly #decorate: (model: ResolvedModel) => ResolvedModel['execute']

  /** @param decorate - makes the `execute` that replaces the one of a model. */
  constructor(
    backend: InferenceBackend,
    decorate: (model: ResolvedModel) => ResolvedModel['execute'],
  ) {
    this.#backend = backend
    this.#decorate = decorate
  }

  resolve(name: string, version: string): ResolvedModel {
    const model = this.#backend.resolve(name, version)
    return decorateModel(model, this.#decorate(model))
  }

  isLive(): boolean {
    return this.#backend.isLive()
  }

  isReady(): boolean {
    return this.#backend.isReady()
  }

  isModelReady(name: string, version: string): Promise<boolean> {
    return this.#backend.isModelReady(name, version)
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    return this.#backend.modelMetadata(name, version)
  }

  statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    return this.#backend.statistics(name, version)
  }

  repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    return this.#backend.repositoryIndex(readyOnly)
  }

  checkCaller(): void {
    this.#backend.checkCaller?.()
  }

  get control(): ModelControl | undefined {
    return this.#backend.control
  }

  get identity(): CallerIdentity | undefined {
    return this.#backend.identity
  }

  get share(): ClientShare | undefined {
    return this.#backend.share
  }

  get regions(): SharedRegions | undefined {
    return this.#backend.regions
  }
}
