import type { CallContext } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { emptyModelConfig, type ModelConfig, type ModelStatistics } from '@tutti/model-config'
import type { InferenceBackend, ModelControl, ResolvedModel } from '@tutti/serving'
import type { ModelScript, ScriptedResponse } from '@tutti/serving/testing'
import type { InferRequest, NamedTensor } from '@tutti/tensor'
import { sendAll } from '@tutti/tensor/testing'

export interface RestBackendOptions {
  /** Script of the model; absent: its outputs are its inputs. */
  readonly infer?: ModelScript
  readonly config?: Partial<ModelConfig>
  readonly isDecoupled?: boolean
  readonly labels?: readonly string[]
}

/** A backend with one model `echo`, versions 1 and 3, that records what reaches it. */
export interface RestBackend extends InferenceBackend {
  readonly requests: { request: InferRequest; context: CallContext; version: number }[]
  isLiveNow: boolean
  isReadyNow: boolean
  control?: ModelControl
}

/** Makes a response with these outputs, final by default. */
export function response(
  outputs: readonly NamedTensor[],
  o: Partial<ScriptedResponse> = {},
): ScriptedResponse {
  return { parameters: new Map(), outputs, final: true, ...o }
}

async function* echo(request: InferRequest): AsyncIterable<ScriptedResponse> {
  yield response(request.inputs)
}

export function createRestBackend(o: RestBackendOptions = {}): RestBackend {
  const requests: RestBackend['requests'] = []
  const config = { ...emptyModelConfig('echo'), backend: 'onnxruntime', ...o.config }
  const backend: RestBackend = {
    requests,
    isLiveNow: true,
    isReadyNow: true,
    isLive: () => backend.isLiveNow,
    isReady: () => backend.isReadyNow,
    isModelReady: async (name, version) => {
      if (version.startsWith('-')) {
        throw new ServeError('INVALID_VERSION', `invalid model version specified '${version}'`)
      }
      return isEcho(name) && ['', '1', '3'].includes(version)
    },
    resolve: (name, version): ResolvedModel => {
      if (!isEcho(name)) throw unknownModel(name)
      const number = version === '' ? 3 : Number(version)
      return {
        name,
        version: number,
        config,
        isDecoupled: o.isDecoupled ?? false,
        labels: () => o.labels,
        execute: (request, sink, context) => {
          requests.push({ request, context, version: number })
          void sendAll((o.infer ?? echo)(request, context), sink)
        },
      }
    },
    modelMetadata: (name, version) => {
      if (!isEcho(name)) throw unknownModel(name)
      return {
        name,
        versions: version === '' ? ['1', '3'] : [version],
        platform: 'onnxruntime_onnx',
        inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }],
        outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 2] }],
      }
    },
    statistics: async (name) => {
      if (name !== '' && !isEcho(name)) {
        throw new ServeError('INVALID_REQUEST', `requested model '${name}' is not available`)
      }
      return [statistics]
    },
    repositoryIndex: async (readyOnly) => [
      { name: 'echo', version: '3', state: 'READY', reason: '' },
      ...(readyOnly ? [] : ([{ name: 'broken', version: '', state: '', reason: '' }] as const)),
    ],
  }
  return backend
}

/** Names that mean the scripted model; the odd ones are for paths. */
function isEcho(name: string): boolean {
  return name.startsWith('echo')
}

function unknownModel(name: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `Request for unknown model: '${name}' is not found`)
}

const none = { count: 0n, ns: 0n }

const statistics: ModelStatistics = {
  name: 'echo',
  version: '3',
  lastInference: 1_763_000_000_000n,
  inferenceCount: 8n,
  executionCount: 2n,
  success: { count: 4n, ns: 9_007_199_254_740_993n },
  fail: none,
  queue: none,
  computeInput: none,
  computeInfer: none,
  computeOutput: none,
  cacheHit: none,
  cacheMiss: none,
  batchStats: [{ batchSize: 4n, computeInput: none, computeInfer: none, computeOutput: none }],
}
