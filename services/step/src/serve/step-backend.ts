import { randomUUID } from 'node:crypto'
import { type Clock, remainingMs, type Span, type Tracing } from '@tutti/chassis'
import type { ServedModel } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import {
  isDecoupled,
  type ModelMetadata,
  type ModelStatistics,
  modelMetadata,
} from '@tutti/model-config'
import type { Envelope } from '@tutti/protocol'
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
} from '@tutti/server'
import {
  type ExecuteOptions,
  type InferRequest,
  type ResponseSink,
  TensorMemory,
} from '@tutti/tensor'
import type { EnvelopeSink } from '@tutti/transport'
import type { Step } from '../step.ts'

export interface StepBackendOptions {
  readonly step: Step
  /** Names this process, as the owner of the tensors that it holds. */
  readonly replica: string
  /** Triton's `--strict-readiness`: ready only if every known version is. */
  readonly strictReadiness: boolean
  readonly clock: Clock
  readonly tracing: Tracing
}

/** What clients see who talk to a step directly: its models as one Triton server. */
export class StepBackend implements InferenceBackend {
  readonly memory: TensorMemory
  readonly control = FLAGS_RULE
  readonly #o: StepBackendOptions
  #models: ReadonlyMap<string, ServedModel> = new Map()
  #isLive = true

  constructor(o: StepBackendOptions) {
    this.memory = new TensorMemory(o.replica)
    this.#o = o
    this.#learn()
    o.step.onChange(() => this.#learn())
  }

  /** From now on the server is neither live nor ready; the doors refuse new requests. */
  stop(): void {
    this.#isLive = false
  }

  isLive(): boolean {
    return this.#isLive
  }

  isReady(): boolean {
    if (!this.#isLive) return false
    return !this.#o.strictReadiness || areAllReady(this.#models.values())
  }

  async isModelReady(name: string, version: string): Promise<boolean> {
    try {
      const found = findModel(this.#models, name, version).version
      if (found.judgesReadiness !== true) return true
      return (await this.#o.step.control.isReady?.(name, found.version)) ?? true
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
      labels: (output) => found.model.labels[output],
      execute: (request, sink, context) => this.#execute(found, request, sink, context),
    }
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    const { model, config, version: found } = findModel(this.#models, name, version)
    return modelMetadata(config, version === '' ? readyVersions(model) : [found.version])
  }

  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    return selectStatistics(await this.#o.step.control.statistics(name, ''), name, version)
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    return toIndex(this.#models.values(), readyOnly)
  }

  #learn(): void {
    this.#models = new Map(this.#o.step.served().map((model) => [model.name, model]))
  }

  /** The way of a router's envelope, without the way. */
  #execute(
    found: FoundVersion<ServedModel>,
    request: InferRequest,
    sink: ResponseSink,
    context: ExecuteOptions,
  ): void {
    const { step, tracing } = this.#o
    const { name } = found.model
    const { version } = found.version
    const span = tracing.startSpan(`infer ${name}`, {
      kind: 'server',
      parent: context.trace,
      attributes: { 'tutti.model': name, 'tutti.version': version },
    })
    const tensors = request.inputs.map((input) => this.memory.hold(input.data))
    const steps: EnvelopeSink = {
      send: (response) => {
        const { final, error, times } = response
        if (error !== undefined) span.recordError(error)
        if (final) {
          for (const tensor of tensors) this.memory.release(tensor.id)
          span.end()
        }
        if (error === undefined) sink.send(response)
        else sink.fail(error, 'maybe', times)
      },
      room: () => sink.ready?.(),
    }
    const envelope = this.#toEnvelope(found, request, context, span)
    void step.handle(envelope, tensors, steps, { signal: context.signal })
  }

  #toEnvelope(
    { model, version }: FoundVersion<ServedModel>,
    request: InferRequest,
    context: ExecuteOptions,
    span: Span,
  ): Envelope {
    const remaining = remainingMs(context, this.#o.clock)
    return {
      requestKey: randomUUID(),
      model: model.name,
      version: version.version,
      revision: version.revision,
      step: '',
      attempt: 1,
      context: request.context,
      requestedOutputs: request.requestedOutputs,
      inputs: request.inputs,
      ...(remaining !== undefined && { remainingMs: remaining }),
      ...span.traceParent,
    }
  }
}
