import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Logger, silentLogger, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type ModelConfig,
  type ModelVersionSource,
  noGpusAvailable,
  withSequenceTensors,
} from '@tutti/model-config'
import type { Engine } from '../engine.ts'
import { type HostPolicies, policyName } from '../host-policies.ts'
import { modelPath } from '../model-file.ts'
import { inspectOnnx } from '../onnx/inspect.ts'
import { isBatchable, toPorts, toSignature } from '../onnx/model-ports.ts'
import { type Placement, placeInstances } from '../placement.ts'
import { startInstances } from '../start-instances.ts'
import { checkConfig } from './config-check.ts'
import { cudaProviderProblem } from './cuda-provider.ts'
import { toContext } from './onnx-context.ts'
import { OnnxModel } from './onnx-model.ts'
import type { SessionPort } from './session-contract.ts'
import { SessionInstance, type SessionInstanceOptions } from './session-instance.ts'
import { compileSessionOptions, executionProviders } from './session-options.ts'
import { SlotPool } from './slot.ts'

export interface OnnxEngineOptions {
  /** Default: no log. */
  readonly log?: Logger
  readonly clock?: Clock
  /** The module that session threads run; tests put a faulty one here. */
  readonly threadModule?: URL
  /** Those that are known, which no session can keep to: the runtime's threads are those of this process. */
  readonly hostPolicies?: HostPolicies
}

const DEFAULT_FILENAME = 'model.onnx'
/** Most bytes of buffers kept for reuse, for all models of the engine: each sees requests of many sizes in the course of days. */
const POOL_BYTES = 64 * 1024 * 1024
/** In the one log line about what a model's configuration sets in vain. */
const MAX_LISTED_SETTINGS = 16

// The thread's module is not imported, so its name is not rewritten when this one is compiled.
const THREAD_MODULE = new URL(
  `./session-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`,
  import.meta.url,
)

/** A model is a file, or a directory that holds the file and its external data. */
async function resolveOnnxFile(path: string): Promise<string> {
  try {
    return (await stat(path)).isDirectory() ? join(path, DEFAULT_FILENAME) : path
  } catch (error) {
    throw new ServeError('MODEL_LOAD_FAILED', `model file '${path}' does not exist`, {
      cause: error,
    })
  }
}

function refuseWithoutCuda(config: ModelConfig, placements: readonly Placement[]): void {
  const gpu = placements.find((placement) => placement.kind === 'GPU')
  const problem = cudaProviderProblem()
  if (gpu === undefined || problem === undefined) return
  throw noGpusAvailable({ model: config.name, group: gpu.group, found: problem })
}

type Parts = Required<OnnxEngineOptions> & { readonly pool: SlotPool }

function toPort({ name, datatype, optional }: SessionPort): SessionPort {
  return { name, datatype, optional }
}

async function load(source: ModelVersionSource, instances: number, o: Parts): Promise<OnnxModel> {
  const config = withSequenceTensors(source.config)
  const modelFile = await resolveOnnxFile(modelPath(source, DEFAULT_FILENAME))
  const all = toPorts(await inspectOnnx(modelFile))
  checkConfig(config, all)
  // A default that the configuration does not declare stays a constant of the model.
  const declared = new Set(config.input.map(({ name }) => name))
  const inputs = all.inputs.filter(({ name, optional }) => !optional || declared.has(name))
  const ports = { inputs, outputs: all.outputs }
  const placements = placeInstances(config, instances)
  refuseWithoutCuda(config, placements)
  const usesGpu = placements.some(({ kind }) => kind === 'GPU')
  const { session, ineffective: ignored } = compileSessionOptions(config, usesGpu)
  const ineffective = [...ignored]
  const isPinned = placements.some((one) => o.hostPolicies.has(policyName(one)))
  if (isPinned) ineffective.push('instance_group.host_policy')
  if (ineffective.length > 0) {
    // One line for a model, however much its configuration sets.
    const settings = ineffective.slice(0, MAX_LISTED_SETTINGS)
    const fields = { model: source.name, settings, count: ineffective.length }
    o.log.warn('settings have no effect', fields)
  }
  const plan = { modelFile, inputs: inputs.map(toPort), outputs: all.outputs.map(toPort) }
  const sessions = await startInstances(placements, (placement, instance) => {
    const options = { ...session, executionProviders: executionProviders(placement) }
    const fields = { model: source.name, version: String(source.version), instance }
    return start({ ...o, plan: { ...plan, options }, fields })
  })
  return new OnnxModel(toContext(config, ports), sessions)
}

async function start(o: SessionInstanceOptions): Promise<SessionInstance> {
  const [{ name, deviceId } = { name: 'cpu' }] = o.plan.options.executionProviders
  // What the runtime says of libraries that cannot be loaded names none of them.
  const where =
    name === 'cuda' ? `on CUDA device ${deviceId}, by the provider for CUDA 12 and cuDNN 9: ` : ''
  try {
    return await SessionInstance.start(o)
  } catch (error) {
    const prefix = `failed to load model '${String(o.fields['model'])}': ${where}`
    throw ServeError.from(error).withPrefix(prefix)
  }
}

/**
 * Makes the `onnxruntime` engine: onnxruntime-node, one session on one thread per instance, never on the calling thread.
 * The process must not exit before every loaded model is closed: exiting while a session runs aborts it.
 */
export function createOnnxEngine(o: OnnxEngineOptions = {}): Engine {
  const pool = new SlotPool(POOL_BYTES)
  const defaults = { log: silentLogger, clock: systemClock, threadModule: THREAD_MODULE }
  const parts = { ...defaults, hostPolicies: new Map(), ...o, pool }
  return {
    backend: 'onnxruntime',
    cuda: { problem: cudaProviderProblem, modelChooses: false },
    inspect: async (modelFile) => {
      const signature = toSignature(toPorts(await inspectOnnx(await resolveOnnxFile(modelFile))))
      return { ...signature, batchable: isBatchable(signature) }
    },
    load: (source, { instances }) => load(source, instances, parts),
  }
}
