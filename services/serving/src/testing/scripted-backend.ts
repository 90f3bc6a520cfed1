import type { CallContext } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type ModelConfig,
  type ModelMetadata,
  type ModelStatistics,
  parseModelConfig,
} from '@tutti/model-config'
import type { InferRequest, NamedTensor, StepResponse } from '@tutti/tensor'
import { sendAll } from '@tutti/tensor/testing'
import type {
  IndexEntry,
  InferenceBackend,
  ModelControl,
  ResolvedModel,
} from '../backend/inference-backend.ts'

/** A response as a script writes it, without its index. */
export type ScriptedResponse = Omit<StepResponse, 'index'>

/** The answer of a scripted model to a request. */
export type ModelScript = (
  request: InferRequest,
  context: CallContext,
) => AsyncIterable<ScriptedResponse>

/** Makes a script that fails before it gives a response. */
export function failsWith(error: Error): ModelScript {
  // oxlint-disable-next-line require-yield -- it gives no response
  return async function* () {
    throw error
  }
}

export interface ScriptedModel {
  /** config.pbtxt without the name. */
  readonly config?: string
  readonly isDecoupled?: boolean
  readonly labels?: Readonly<Record<string, readonly string[]>>
  readonly script?: ModelScript
}

const DEFAULT_CONFIG = `
  backend: "scripted"
  max_batch_size: 8
  input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
  output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
`

/** Makes a script of one final response, whose outputs are the request's inputs, renamed by `rename`. */
export function echo(rename: (name: string) => string = (name) => name): ModelScript {
  return async function* (request) {
    yield response(
      request,
      request.inputs.map((input) => ({ ...input, name: rename(input.name) })),
    )
  }
}

/** Makes a response to a request, final by default, with the request's parameters. */
export function response(
  request: InferRequest,
  outputs: readonly NamedTensor[],
  o: { readonly final?: boolean } = {},
): ScriptedResponse {
  const { context, retain } = request
  // The outputs may be the inputs.
  const lent = retain && { retain }
  return { parameters: context.parameters, outputs, final: o.final ?? true, ...lent }
}

/** A backend whose models do what a test says. It keeps the requests that it gets. */
export class ScriptedBackend implements InferenceBackend {
  live = true
  ready = true
  readonly requests: InferRequest[] = []
  readonly contexts: CallContext[] = []
  statisticsOf: readonly ModelStatistics[] = []
  index: readonly IndexEntry[] = []
  control?: ModelControl
  regions?: InferenceBackend['regions']
  readonly #models: Readonly<Record<string, ScriptedModel>>

  constructor(models: Readonly<Record<string, ScriptedModel>>) {
    this.#models = models
  }

  isLive(): boolean {
    return this.live
  }

  isReady(): boolean {
    return this.ready
  }

  async isModelReady(name: string): Promise<boolean> {
    return Object.hasOwn(this.#models, name)
  }

  resolve(name: string): ResolvedModel {
    const model = this.#models[name]
    if (model === undefined) {
      throw new ServeError('MODEL_NOT_FOUND', `Request for unknown model: '${name}' is not found`, {
        details: { model: name },
      })
    }
    return {
      name,
      version: 1,
      config: this.#configOf(name, model),
      isDecoupled: model.isDecoupled ?? false,
      labels: (output) => model.labels?.[output],
      execute: (request, sink, context) => {
        this.requests.push(request)
        this.contexts.push(context)
        void sendAll((model.script ?? echo())(request, context), sink)
      },
    }
  }

  modelMetadata(name: string): ModelMetadata {
    this.resolve(name)
    return {
      name,
      versions: ['1'],
      platform: 'scripted',
      inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
      outputs: [{ name: 'y', datatype: 'BYTES', shape: [-1, 4] }],
    }
  }

  async statistics(): Promise<readonly ModelStatistics[]> {
    return this.statisticsOf
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    return readyOnly ? this.index.filter(({ state }) => state === 'READY') : this.index
  }

  #configOf(name: string, model: ScriptedModel): ModelConfig {
    return { ...parseModelConfig(model.config ?? DEFAULT_CONFIG, 'config.pbtxt'), name }
  }
}
