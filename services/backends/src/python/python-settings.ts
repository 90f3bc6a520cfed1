import type { ModelConfig } from '@tutti/model-config'
import { findIneffective, refuseField } from '../config-fields.ts'

/** Settings of the instances of Python models. Times are in milliseconds. */
export interface PythonSettings {
  /**
   * Time from a process's fork until it has connected, before it imports anything of a model. As Triton's stub-timeout-seconds.
   */
  readonly startMs: number
  /** Time that finalize may take before the process is killed. */
  readonly finalizeMs: number
  /** Time that an execution may go on after its last caller has left; 0 for ever. */
  readonly abandonedMs: number
  /** Time that a model which is not decoupled may leave a request unanswered after `execute` has returned; 0 for ever. */
  readonly unansweredMs: number
  /** Time limit of a call to another model that belongs to no request; 0 for none. */
  readonly backgroundMs: number
  /** Most calls that an instance may have open without a request. */
  readonly backgroundCalls: number
  /** Waits before a process that ended by itself is started again. They double from the first to the longest. */
  readonly restartFirstMs: number
  readonly restartLongestMs: number
  /** Lifetime of a process after which the next wait is `restartFirstMs` again. */
  readonly restartResetMs: number
  /** Most bytes of an instance's shared memory, which bounds the tensors of its open executions. */
  readonly arenaBytes: number
  /** Bytes of shared memory that an idle instance keeps. */
  readonly idleBytes: number
}

/** Settings of a model's instances, after its own parameters. */
export interface ModelSettings {
  readonly settings: PythonSettings
  /** Parameters that are set and have no effect here, each with the reason. */
  readonly ineffective: readonly string[]
}

const SIZES: Readonly<Record<string, keyof PythonSettings>> = {
  SHM_DEFAULT_BYTE_SIZE: 'idleBytes',
  SHM_MAX_BYTE_SIZE: 'arenaBytes',
}
const INEFFECTIVE: Readonly<Record<string, string>> = {
  SHM_GROWTH_BYTE_SIZE: 'shared memory grows by what is used',
  SHM_REGION_PREFIX_NAME: 'shared memory has no name',
}
/** But pinned memory, which asks for nothing: it is on unless somebody says otherwise, and without effect either way. */
const OPTIMIZATIONS = [
  'optimization.execution_accelerators',
  'optimization.graph',
  'optimization.cuda',
  'optimization.priority',
  'optimization.eager_batching',
  'optimization.gather_kernel_buffer_threshold',
]
const CPU_ONLY = 'FORCE_CPU_ONLY_INPUT_TENSORS'

/**
 * Reads the settings of a model's instances from its configuration. Other parameters are for the model's own code.
 *
 * @throws ServeError MODEL_LOAD_FAILED, code INVALID_ARGUMENT, that names the parameter.
 */
export function readModelSettings(config: ModelConfig, settings: PythonSettings): ModelSettings {
  const read: Partial<Record<keyof PythonSettings, number>> = {}
  const ineffective: string[] = []
  for (const [name, { string_value: value }] of Object.entries(config.parameters)) {
    const size = SIZES[name]
    const why = INEFFECTIVE[name]
    if (size !== undefined) read[size] = readBytes(config, name, value)
    if (why !== undefined) ineffective.push(`${name}: ${why}`)
    if (name === CPU_ONLY && value !== 'yes') {
      if (value !== 'no') refuse(config, name, value, 'yes or no')
      ineffective.push(`${CPU_ONLY}: inputs are always in the host's memory`)
    }
  }
  const none = `backend '${config.backend}' has none`
  ineffective.push(...findIneffective(config, OPTIMIZATIONS, none))
  return { settings: { ...settings, ...read }, ineffective }
}

function readBytes(config: ModelConfig, name: string, value: string): number {
  const bytes = Number(value)
  if (/^\d+$/.test(value) && bytes <= MOST_BYTES) return bytes
  return refuse(config, name, value, `a number of bytes up to ${MOST_BYTES}`)
}

function refuse(config: ModelConfig, name: string, value: string, want: string): never {
  refuseField(config.name, `parameters["${name}"]`, `got "${value}", want ${want}`)
}

const MOST_BYTES = 2 ** 40
const MIB = 1024 * 1024

export const DEFAULT_PYTHON_SETTINGS: PythonSettings = {
  startMs: 30_000,
  finalizeMs: 10_000,
  abandonedMs: 30_000,
  unansweredMs: 3_600_000,
  backgroundMs: 3_600_000,
  backgroundCalls: 256,
  restartFirstMs: 100,
  restartLongestMs: 5000,
  restartResetMs: 30_000,
  arenaBytes: 4096 * MIB,
  idleBytes: MIB,
}
