import { existsSync } from 'node:fs'
import { type Clock, type Logger, silentLogger, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  isDecoupled,
  type ModelConfig,
  type ModelSignature,
  type ModelVersionSource,
  toJsonConfig,
  withSequenceTensors,
} from '@tutti/model-config'
import { refuseConfig } from '../config-fields.ts'
import type { Engine, EngineCuda, EngineOptions } from '../engine.ts'
import { type HostPolicies, policyName } from '../host-policies.ts'
import { modelPath, requireRuntime } from '../model-file.ts'
import { CustomMetrics } from '../model-metrics.ts'
import { type Placement, placeInstances } from '../placement.ts'
import { startInstances } from '../start-instances.ts'
import { ENVIRONMENT_CACHE } from './cached-folder.ts'
import { completeConfig } from './complete-config.ts'
import { findEnvironment } from './environment.ts'
import type { ProcessTask } from './instance-process.ts'
import { type GroupedPlacement, groupByProcess, ProcessGroup } from './process-group.ts'
import { type LineOrigin, ProcessOutput } from './process-output.ts'
import { PythonInstance } from './python-instance.ts'
import { PythonModel } from './python-model.ts'
import {
  DEFAULT_PYTHON_SETTINGS,
  type PythonSettings,
  readModelSettings,
} from './python-settings.ts'
import { openSharedMemory, type SharedMemoryLike } from './shared-memory.ts'
import type { ForkedProcess } from './zygote.ts'
import { type ZygoteLease, ZygotePool } from './zygote-pool.ts'

export interface PythonEngineOptions {
  /** Logger of the engine; silent if absent. */
  readonly log?: Logger
  readonly clock?: Clock
  /**
   * Interpreter of models without an environment of their own: a name on PATH, a path, or a function that finds one when a model
   * needs it. Default `python3`.
   */
  readonly interpreter?: string | (() => Promise<string>)
  readonly settings?: Partial<PythonSettings>
  /** Folder of unpacked environments of models. Default: ~/.cache/tutti/environments. */
  readonly environmentCache?: string
  /** Metrics that models write to. Default: nowhere. */
  readonly metrics?: CustomMetrics
  /** False makes tensors travel over the socket, as where memory cannot be shared. */
  readonly sharesMemory?: boolean
  /** Memory that is shared with models. Default: memory of this machine. */
  readonly memory?: SharedMemoryLike
  /** CPUs of the processes of instances. Default: those of this process. */
  readonly hostPolicies?: HostPolicies
  /** Pool of zygotes, shared by engines whose processes may be forked from one. Default: a pool of its own. */
  readonly zygotes?: ZygotePool
}

/** Program that the processes of an engine run. */
export interface PythonProgram {
  readonly backend: string
  /** Statements about CUDA of programs that use no other devices. */
  readonly cuda?: EngineCuda
  /** True if the class may have `auto_complete_config`. */
  readonly completesConfig: boolean
  /** True if its instances may share a process. */
  readonly sharesInterpreters: boolean
  /** Python modules that are imported before instances are forked. */
  readonly modules: readonly string[]
  /** Runtime that the configuration must name, for a python-based backend, whose class is not the model's. */
  readonly runtime?: string
  /**
   * Finds the file with the model's class.
   *
   * @throws ServeError MODEL_LOAD_FAILED, UNSUPPORTED if the model cannot be served.
   */
  modelFile(source: Omit<ModelVersionSource, 'revision'>): string
}

const DEFAULT_FILENAME = 'model.py'
const PYTHON_PROGRAM: PythonProgram = {
  backend: 'python',
  completesConfig: true,
  sharesInterpreters: true,
  modules: ['numpy'],
  modelFile,
}

class PythonEngine implements Engine {
  readonly backend: string
  readonly cuda?: EngineCuda
  readonly sharesInterpreters: boolean
  readonly #program: PythonProgram
  readonly #log: Logger
  readonly #clock: Clock
  readonly #interpreter: string | (() => Promise<string>)
  readonly #settings: PythonSettings
  readonly #environmentCache: string
  readonly #metrics: CustomMetrics
  readonly #pool: ZygotePool
  readonly #hostPolicies: HostPolicies
  /** Opened for the first model; undefined if there is none. */
  #memory: readonly [SharedMemoryLike | undefined] | undefined

  constructor(program: PythonProgram, o: PythonEngineOptions) {
    this.backend = program.backend
    if (program.cuda !== undefined) this.cuda = program.cuda
    this.sharesInterpreters = program.sharesInterpreters
    this.#program = program
    this.#log = o.log ?? silentLogger
    this.#clock = o.clock ?? systemClock
    this.#interpreter = o.interpreter ?? 'python3'
    this.#settings = { ...DEFAULT_PYTHON_SETTINGS, ...o.settings }
    this.#environmentCache = o.environmentCache ?? ENVIRONMENT_CACHE
    this.#metrics = o.metrics ?? new CustomMetrics()
    this.#pool = o.zygotes ?? new ZygotePool()
    this.#hostPolicies = o.hostPolicies ?? new Map()
    if (o.sharesMemory === false) this.#memory = [undefined]
    else if (o.memory !== undefined) this.#memory = [o.memory]
  }

  /** Returns an empty signature: a Python file says nothing of itself; `complete` asks its code. */
  inspect(): Promise<ModelSignature & { readonly batchable: boolean }> {
    return Promise.resolve({ inputs: [], outputs: [], batchable: false })
  }

  check(source: Omit<ModelVersionSource, 'revision'>): void {
    this.#program.modelFile(source)
  }

  async complete(
    source: Omit<ModelVersionSource, 'revision'>,
    { signal }: Pick<EngineOptions, 'signal'> = {},
  ): Promise<ModelConfig> {
    if (!this.#program.completesConfig) return source.config
    const file = this.#program.modelFile(source)
    const { runtime } = this.#program
    const lease = await this.#lease(source)
    try {
      const module = { file, package: packageOf(source, runtime) }
      const { name } = source.config
      const origin = originOf({ ...source, name }, `${name}_autocomplete`)
      const processes = new ProcessGroup(() => this.#fork(lease, origin, 1))
      const o = { ...this.#common, origin, processes, signal }
      const config = await completeConfig(source, module, o)
      return runtime === undefined ? config : { ...config, runtime }
    } finally {
      lease.release()
    }
  }

  async load(source: ModelVersionSource, options: EngineOptions): Promise<PythonModel> {
    const { config } = source
    const file = this.#program.modelFile(source)
    const { settings, ineffective } = readModelSettings(config, this.#settings)
    if (ineffective.length > 0) {
      this.#log.warn('settings have no effect', { model: source.name, settings: ineffective })
    }
    const lease = await this.#lease(source)
    const { host, signal, restartMs, report } = options
    const placements = groupByProcess(
      placeInstances(config, options.instances),
      options.sharesInterpreter === true,
      (name, instances) => this.#fork(lease, originOf(source, name), instances),
    )
    const start = (placement: GroupedPlacement): Promise<PythonInstance> => {
      signal?.throwIfAborted()
      this.#memory ??= [this.#openMemory()]
      const o = {
        ...this.#common,
        processes: placement.processes,
        origin: originOf(source, placement.name),
        task: {
          ...toTask(source, placement),
          file,
          package: packageOf(source, this.#program.runtime),
          cpus: this.#hostPolicies.get(policyName(placement)) ?? [],
        },
        isDecoupled: isDecoupled(config),
        settings,
        memory: this.#memory[0],
        host,
        metrics: this.#metrics,
        restartMs,
        report,
      }
      return PythonInstance.start(o, signal)
    }
    try {
      return new PythonModel(await startInstances(placements, start), () => lease.release())
    } catch (error) {
      lease.release()
      throw ServeError.from(error)
    }
  }

  async #lease({
    config,
    modelDirectory,
  }: Omit<ModelVersionSource, 'revision'>): Promise<ZygoteLease> {
    const environment = await findEnvironment(config, modelDirectory, this.#environmentCache)
    const given = environment?.interpreter ?? this.#interpreter
    return this.#pool.lease({
      interpreter: typeof given === 'string' ? given : await given(),
      environment: environment?.directory ?? '',
      modules: this.#program.modules,
    })
  }

  get #common() {
    return { settings: this.#settings, clock: this.#clock, log: this.#log }
  }

  async #fork(lease: ZygoteLease, origin: LineOrigin, instances: number): Promise<ForkedProcess[]> {
    const zygote = await lease.zygote()
    const output = new ProcessOutput(this.#log, origin, () => this.#clock.now())
    const { startMs } = this.#settings
    return await zygote.fork(output, instances, { clock: this.#clock, ms: startMs })
  }

  #openMemory(): SharedMemoryLike | undefined {
    const memory = openSharedMemory()
    if (typeof memory !== 'string') return memory
    this.#log.warn('memory is not shared with models', { problem: memory })
    return undefined
  }
}

/**
 * Makes the `python` engine. Each instance has a process, or shares one. A process is forked from one that has imported NumPy
 * already. The caller closes loaded models; if this process ends without that, its processes and their memory still go away.
 */
export function createPythonEngine(
  o: PythonEngineOptions = {},
  program: PythonProgram = PYTHON_PROGRAM,
): Engine {
  return new PythonEngine(program, o)
}

/**
 * Returns the package in which a model's file is imported with its neighbours; '' for a backend's file, which is a module by
 * itself.
 */
function packageOf({ version }: Pick<ModelVersionSource, 'version'>, runtime?: string): string {
  return runtime === undefined ? String(version) : ''
}

function originOf(
  { name, version }: Pick<ModelVersionSource, 'name' | 'version'>,
  instance: string,
): LineOrigin {
  return { model: name, version: String(version), instance }
}

/** Makes the task of an instance's process, but for the file that it runs. */
function toTask(source: ModelVersionSource, placement: Placement): ProcessTask {
  const { config, modelDirectory } = source
  const version = String(source.version)
  return {
    task: 'serve',
    model_dir: source.versionDirectory,
    name: config.name,
    version,
    instance: placement.name,
    outputs: withSequenceTensors(config).output.map(({ name }) => name),
    decoupled: isDecoupled(config),
    iterative: config.sequence_batching?.iterative_sequence === true,
    args: {
      model_config: JSON.stringify(toJsonConfig(config)),
      model_instance_kind: placement.kind,
      model_instance_name: placement.name,
      model_instance_device_id: String(placement.deviceId),
      model_repository: modelDirectory,
      model_version: version,
      model_name: config.name,
    },
  }
}

/** @throws ServeError MODEL_LOAD_FAILED if it is absent or outside of the version directory. */
function modelFile(source: Omit<ModelVersionSource, 'revision'>): string {
  requireRuntime(source, 'libtriton_python.so', source.versionDirectory)
  const path = modelPath(source, DEFAULT_FILENAME)
  if (existsSync(path)) return path
  const text = `unable to load model '${source.name}', there is no file '${path}'`
  return refuseConfig('default_model_filename', text)
}
