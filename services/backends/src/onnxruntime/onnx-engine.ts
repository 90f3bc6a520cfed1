import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Logger, silentLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type ModelConfig, noGpusAvailable, withSequenceTensors } from '@tutti/model-config'
import type { Engine, EngineOptions, LoadedModel } from '../engine.ts'
import { type HostPolicies, policyName } from '../host-policies.ts'
import { modelPath, refuseGitLfsPointer } from '../model-file.ts'
import { hasBoundedRuns } from '../onnx/bounded-runs.ts'
import { inspectOnnx } from '../onnx/inspect.ts'
import { isBatchable, toPorts, toSignature } from '../onnx/model-ports.ts'
import { type Placement, placeInstances } from '../placement.ts'
import { BufferPool } from './buffer-pool.ts'
import { checkConfig } from './config-check.ts'
import { cudaProviderProblem } from './cuda-provider.ts'
import { findOrtLibrary } from './find-ort-library.ts'
import { startOrtInstances } from './load-session.ts'
import { toContext } from './onnx-context.ts'
import { OnnxModel } from './onnx-model.ts'
import { loadOrtLibrary, type OrtLibrary } from './ort-library.ts'
import { RunThreads } from './run-threads.ts'
import { compileSessionOptions } from './session-options.ts'

export interface OnnxEngineOptions {
  /** Logger of the engine; silent if absent. */
  readonly log?: Logger
  /**
   * Known host policies. ONNX models cannot follow them, because the runtime's threads are those of this process; a warning says
   * so.
   */
  readonly hostPolicies?: HostPolicies
  /** Path of ONNX Runtime's library, or of its folder. Default: that of the npm package. */
  readonly library?: string | undefined
  /** Most elements of a BYTES input; default MAX_STRINGS. The serving thread makes a string of each element for the runtime. */
  readonly maxStrings?: number | undefined
}

/** Default bound on the elements of a BYTES input: they take some 20 ms of the serving thread, 100 ms on a busy machine. */
export const MAX_STRINGS = 2 ** 18
const DEFAULT_FILENAME = 'model.onnx'
/** Most bytes of buffers kept for reuse, for all models of the engine: each sees requests of many sizes in the course of days. */
const POOL_BYTES = 64 * 1024 * 1024
/** Most settings in the one log line that lists the settings of a model without effect. */
const MAX_LISTED_SETTINGS = 16

/** Resolves the file of a model, which is a file or a directory that holds the file and its external data. */
async function resolveOnnxFile(path: string): Promise<string> {
  const isDirectory = await stat(path).then(
    (found) => found.isDirectory(),
    (cause: unknown) => {
      throw new ServeError('MODEL_LOAD_FAILED', `model file '${path}' does not exist`, { cause })
    },
  )
  const file = isDirectory ? join(path, DEFAULT_FILENAME) : path
  refuseGitLfsPointer(file)
  return file
}

function refuseWithoutCuda(
  config: ModelConfig,
  placements: readonly Placement[],
  library: string | undefined,
): void {
  const gpu = placements.find((placement) => placement.kind === 'GPU')
  const problem = cudaProviderProblem(library)
  if (gpu === undefined || problem === undefined) return
  throw noGpusAvailable({ model: config.name, group: gpu.group, found: problem })
}

interface Runtime {
  readonly library: OrtLibrary
  readonly threads: RunThreads
}

type LoadOptions = Required<Pick<OnnxEngineOptions, 'log' | 'hostPolicies'>> & {
  readonly maxStrings: number
  readonly library?: string | undefined
  readonly pool: BufferPool
  /** Loaded when it is first asked for. */
  readonly runtime: () => Runtime
}

/** A model to be loaded. */
interface OnnxSource {
  readonly name: string
  /** Absolute path of the .onnx file, or the bytes of a model without external data. */
  readonly file: string | Uint8Array
  /** Configuration with its inputs and outputs. */
  readonly config: ModelConfig
  /** Beginning of the names of its inputs in the file that those in the configuration lack. */
  readonly inputPrefix?: string
}

async function load(
  { name: model, file, config, inputPrefix = '' }: OnnxSource,
  count: number,
  o: LoadOptions,
): Promise<OnnxModel> {
  const inFile = toPorts(await inspectOnnx(file))
  const named = inFile.inputs.map((port) => {
    return { ...port, name: port.name.slice(inputPrefix.length) }
  })
  const all = { inputs: named, outputs: inFile.outputs }
  checkConfig(config, all)
  // A default that the configuration does not declare stays a constant of the model.
  const declared = new Set(config.input.map(({ name }) => name))
  const inputs = all.inputs.filter(({ name, optional }) => !optional || declared.has(name))
  const ports = { inputs, outputs: all.outputs }
  const placements = placeInstances(config, count)
  refuseWithoutCuda(config, placements, o.library)
  const usesGpu = placements.some(({ kind }) => kind === 'GPU')
  const { session, accelerators, ineffective: ignored } = compileSessionOptions(config, usesGpu)
  const ineffective = [...ignored]
  const isPinned = placements.some((one) => o.hostPolicies.has(policyName(one)))
  if (isPinned) ineffective.push('instance_group.host_policy')
  if (ineffective.length > 0) {
    // One line for a model, however much its configuration sets.
    const settings = ineffective.slice(0, MAX_LISTED_SETTINGS)
    const fields = { model, settings, count: ineffective.length }
    o.log.warn('settings have no effect', fields)
  }
  const { instances, release } = await startOrtInstances({
    model,
    placements,
    file,
    inputs: inputs.map((port) => ({ ...port, name: `${inputPrefix}${port.name}` })),
    outputs: all.outputs,
    options: session,
    accelerators,
    mayRunHere: await hasBoundedRuns(file),
    pool: o.pool,
    ...o.runtime(),
  })
  return new OnnxModel(toContext(config, ports, o.maxStrings), instances, release)
}

/** The engine, which also loads models that are in no file. */
export interface OnnxEngine extends Engine {
  /** Loads a model from its bytes. @throws ServeError as `load`. */
  loadBytes(
    source: OnnxSource & { readonly file: Uint8Array },
    options: EngineOptions,
  ): Promise<LoadedModel>
}

export function isOnnxEngine(engine: Engine): engine is OnnxEngine {
  return 'loadBytes' in engine
}

/**
 * Makes the `onnxruntime` engine, which calls ONNX Runtime's C API. Each model has one session for each device. The first model
 * loads the library.
 */
export function createOnnxEngine(o: OnnxEngineOptions = {}): OnnxEngine {
  let made: Runtime | undefined
  const runtime = (): Runtime => {
    if (made !== undefined) return made
    const library = loadOrtLibrary(findOrtLibrary(o.library))
    made = { library, threads: new RunThreads(library.threadFunctions) }
    return made
  }
  const pool = new BufferPool(POOL_BYTES)
  const { maxStrings = MAX_STRINGS } = o
  const options = { log: silentLogger, hostPolicies: new Map(), ...o, maxStrings, pool, runtime }
  return {
    backend: 'onnxruntime',
    cuda: { problem: () => cudaProviderProblem(o.library), modelChooses: false },
    inspect: async (modelFile) => {
      const signature = toSignature(toPorts(await inspectOnnx(await resolveOnnxFile(modelFile))))
      return { ...signature, batchable: isBatchable(signature) }
    },
    load: async (source, { instances }) => {
      const file = await resolveOnnxFile(modelPath(source, DEFAULT_FILENAME))
      const config = withSequenceTensors(source.config)
      return await load({ name: source.name, file, config }, instances, options)
    },
    loadBytes: (source, { instances }) => load(source, instances, options),
  }
}
