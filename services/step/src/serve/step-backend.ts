import { randomUUID } from 'node:crypto'
import type { ServedModel } from '@tutti/api'
import { BUILTIN_HOST } from '@tutti/builtins'
import type { Tracing } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  isDecoupled,
  type ModelMetadata,
  type ModelStatistics,
  modelMetadata,
} from '@tutti/model-config'
import {
  areAllReady,
  FLAGS_RULE,
  type FoundVersion,
  findModel,
  type IndexEntry,
  type InferenceBackend,
  type ResolvedModel,
  readyVersions,
  selectStatistics,
  toIndex,
} from '@tutti/serving'
import {
  type ExecuteOptions,
  endingSink,
  type InferRequest,
  type ResponseSink,
} from '@tutti/tensor'
import type { Step } from '../step.ts'

export interface StepBackendOptions {
  readonly step: Step
  /** Triton's `--strict-readiness`: ready only if every known version is. */
  readonly strictReadiness: boolean
  readonly tracing: Tracing
  /** Regions of shared memory; see `openRegions`. */
  readonly regions?: InferenceBackend['regions']
}

/** Serves a step's models to its direct clients, as one Triton server. */
export class StepBackend implements InferenceBackend {
  readonly control = FLAGS_RULE
  readonly #options: StepBackendOptions
  #models: ReadonlyMap<string, ServedModel> = new Map()
  #isLive = true

  constructor(o: StepBackendOptions) {
    this.#options = o
    this.#learn()
    o.step.onChange(() => this.#learn())
  }

  get regions(): InferenceBackend['regions'] {
    return this.#options.regions
  }

  /** Makes the server neither live nor ready from now on. It refuses new requests. */
  stop(): void {
    this.#isLive = false
  }

  isLive(): boolean {
    return this.#isLive
  }

  isReady(): boolean {
    if (!this.#isLive) return false
    return !this.#options.strictReadiness || areAllReady(this.#models.values())
  }

  async isModelReady(name: string, version: string): Promise<boolean> {
    try {
      const found = findModel(this.#models, name, version).version
      return await this.#options.step.control.isReady(name, found.version)
    } catch (error) {
      const { reason } = ServeError.from(error)
      if (reason === 'MODEL_NOT_FOUND' || reason === 'MODEL_NOT_READY') return false
      throw error
    }
  }

  resolve(name: string, version: string): ResolvedModel {
    const found = findModel(this.#models, name, version)
    return {
      name,
      version: found.version.version,
      config: found.config,
      isDecoupled: isDecoupled(found.config),
      labels: (output) => (found.version.own ?? found.model).labels[output],
      execute: (request, sink, context) => this.#execute(found, request, sink, context),
    }
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const { model, config, version: found } = findModel(this.#models, name, version)
    return modelMetadata(config, version === '' ? readyVersions(model) : [found.version])
  }

  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    return selectStatistics(await this.#options.step.control.statistics(name, ''), name, version)
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    return toIndex(this.#models.values(), readyOnly)
  }

  #learn(): void {
    // Clients reach built-ins through ensembles alone.
    const models = this.#options.step.served().filter(({ name }) => name !== BUILTIN_HOST)
    this.#models = new Map(models.map((model) => [model.name, model]))
  }

  #execute(
    { model: { name: model }, version: found }: FoundVersion<ServedModel>,
    request: InferRequest,
    sink: ResponseSink,
    context: ExecuteOptions,
  ): void {
    const { step, tracing } = this.#options
    const { version, revision } = found
    const span = tracing.startSpan(`infer ${model}`, {
      kind: 'server',
      parent: context.trace,
      attributes: { 'tutti.model': model, 'tutti.version': version },
    })
    const traced = endingSink(sink, (error) => {
      if (error !== undefined) span.recordError(error)
      span.end()
    })
    const origin = { requestKey: randomUUID(), step: '', attempt: 1 }
    const trace = span.traceParent
    const o = { ...context, origin, ...(trace !== undefined && { trace }) }
    step.executor({ model, version, revision }).execute(request, traced, o)
  }
}
