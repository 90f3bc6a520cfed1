import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Logger, silentLogger, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type ModelConfig,
  type ModelSignature,
  type ModelVersionSource,
  noGpusAvailable,
} from '@tutti/model-config'
import type { Engine, EngineOptions } from '../engine.ts'
import { modelPath } from '../model-file.ts'
import { inspectOnnx } from '../onnx/inspect.ts'
import { isBatchable, type OnnxPorts, toPorts, toSignature } from '../onnx/model-ports.ts'
import { type Placement, placeInstances } from '../placement.ts'
import { startInstances } from '../start-instances.ts'
import { checkConfig } from './config-check.ts'
import { cudaProviderProblem } from './cuda-provider.ts'
import { toContext } from './onnx-context.ts'
import { OnnxModel } from './onnx-model.ts'
import type { SessionPlan } from './session-contract.ts'
import { SessionInstance } from './session-instance.ts'
import { compileSessionOptions, executionProviders } from './session-options.ts'
import { SlotPool } from './slot.ts'

export interface OnnxEngineOptions {
  /** Default: no log. */
  readonly log?: Logger
  readonly clock?: Clock
  /** The module that session threads run; tests put a faulty one here. */
  readonly threadModule?: URL
}

const DEFAULT_FILENAME = 'model.onnx'
/** Most bytes of input buffers kept for reuse, per model. */
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

class OnnxEngine implements Engine {
  readonly backend = 'onnxruntime'
  readonly cuda = { problem: cudaProviderProblem, modelChooses: false }
  readonly #log: Logger
  readonly #clock: Clock
  readonly #threadModule: URL

  constructor(options: OnnxEngineOptions) {
    this.#log = options.log ?? silentLogger
    this.#clock = options.clock ?? systemClock
    this.#threadModule = options.threadModule ?? THREAD_MODULE
  }

  async inspect(modelFile: string): Promise<ModelSignature & { readonly batchable: boolean }> {
    const ports = toPorts(await inspectOnnx(await resolveOnnxFile(modelFile)))
    const signature = toSignature(ports)
    return { ...signature, batchable: isBatchable(signature) }
  }

  async load(source: ModelVersionSource, options: EngineOptions): Promise<OnnxModel> {
    const { config } = source
    const modelFile = await resolveOnnxFile(modelPath(source, DEFAULT_FILENAME))
    const ports = toPorts(await inspectOnnx(modelFile))
    checkConfig(config, ports)
    const placements = placeInstances(config, options.instances)
    const instances = await this.#startAll(source, modelFile, ports, placements)
    const context = toContext(config, ports)
    return new OnnxModel(context, instances)
  }

  async #startAll(
    source: ModelVersionSource,
    modelFile: string,
    ports: OnnxPorts,
    placements: readonly Placement[],
  ): Promise<SessionInstance[]> {
    const { config } = source
    refuseWithoutCuda(config, placements)
    const usesGpu = placements.some(({ kind }) => kind === 'GPU')
    const compiled = compileSessionOptions(config, usesGpu)
    this.#warnOf(source.name, compiled.ineffective)
    const plan = (placement: Placement): SessionPlan => ({
      modelFile,
      options: { ...compiled.session, executionProviders: executionProviders(placement) },
      inputs: ports.inputs.map(({ name, datatype }) => ({ name, datatype })),
      outputs: ports.outputs.map(({ name, datatype }) => ({ name, datatype })),
    })
    const pool = new SlotPool(POOL_BYTES)
    return await startInstances(placements, (placement, i) =>
      this.#start(source, plan(placement), pool, i),
    )
  }

  /** One line for a model, however much its configuration sets. */
  #warnOf(model: string, ineffective: readonly string[]): void {
    if (ineffective.length === 0) return
    const settings = ineffective.slice(0, MAX_LISTED_SETTINGS)
    this.#log.warn('settings have no effect', { model, settings, count: ineffective.length })
  }

  async #start(source: ModelVersionSource, plan: SessionPlan, pool: SlotPool, instance: number) {
    const [{ name, deviceId } = { name: 'cpu' }] = plan.options.executionProviders
    // What the runtime says of libraries that cannot be loaded names none of them.
    const where =
      name === 'cuda' ? `on CUDA device ${deviceId}, by the provider for CUDA 12 and cuDNN 9: ` : ''
    try {
      return await SessionInstance.start({
        plan,
        pool,
        threadModule: this.#threadModule,
        clock: this.#clock,
        log: this.#log,
        fields: { model: source.name, version: String(source.version), instance },
      })
    } catch (error) {
      throw ServeError.from(error).withPrefix(`failed to load model '${source.name}': ${where}`)
    }
  }
}

/**
 * Makes the `onnxruntime` engine: onnxruntime-node, one session on one thread per instance, never on the calling thread.
 * The process must not exit before every loaded model is closed: exiting while a session runs aborts it.
 */
export function createOnnxEngine(options: OnnxEngineOptions = {}): Engine {
  return new OnnxEngine(options)
}
