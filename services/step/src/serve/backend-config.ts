import type { ProcessOptions, PythonSettings } from '@tutti/backends'
import { flagRefusal } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** Settings of backends that came as `--backend-config`. */
export interface BackendConfig {
  /** `max_batch_size` of a model that can batch and names none. */
  readonly defaultMaxBatchSize: number
  readonly python: ProcessOptions
  readonly pytorch: ProcessOptions
  readonly onnxruntime: { readonly maxStrings?: number }
  /** Those that nothing here uses, as they came. */
  readonly ineffective: readonly string[]
}

interface OnnxNumbers {
  defaultMaxBatchSize: number
  maxStrings?: number
}

/** A setting of Python processes that is a number. */
interface NumberSetting {
  readonly field: keyof PythonSettings
  /** The factor that turns the number of the setting into that of the engine's settings. */
  readonly unit: number
  readonly least: number
  readonly most: number
}

const NO_SETTINGS: ProcessOptions = { settings: {} }
const DEFAULT_MAX_BATCH_SIZE = 4
const MOST_ITEMS = 2 ** 31 - 1
/** By backend and setting. Without a backend it is for all of them. */
const ONNX_NUMBERS: Readonly<
  Record<string, readonly ['defaultMaxBatchSize' | 'maxStrings', number]>
> = {
  ',default-max-batch-size': ['defaultMaxBatchSize', 0],
  'onnxruntime,default-max-batch-size': ['defaultMaxBatchSize', 0],
  'onnxruntime,max-strings': ['maxStrings', 1],
}
const MOST_SECONDS = 86_400
const MOST_BYTES = 2 ** 40
const PYTHON_NUMBERS: Readonly<Record<string, NumberSetting>> = {
  'stub-timeout-seconds': { field: 'startMs', unit: 1000, least: 1, most: MOST_SECONDS },
  'finalize-timeout-seconds': { field: 'finalizeMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'abandoned-timeout-seconds': { field: 'abandonedMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'unanswered-timeout-seconds': { field: 'unansweredMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'background-call-timeout-seconds': {
    field: 'backgroundMs',
    unit: 1000,
    least: 0,
    most: MOST_SECONDS,
  },
  'background-calls': { field: 'backgroundCalls', unit: 1, least: 0, most: 65_536 },
  'shm-default-byte-size': { field: 'idleBytes', unit: 1, least: 0, most: MOST_BYTES },
  'shm-max-byte-size': { field: 'arenaBytes', unit: 1, least: 2 ** 20, most: MOST_BYTES },
}

/**
 * Reads tritonserver's `--backend-config=[BACKEND,]SETTING=VALUE`; without a backend, or with an empty one, it is for all of them. The
 * last of a setting holds. As in Triton any setting is accepted; those without effect here come back.
 *
 * @throws ServeError FLAG_INVALID for a value that a setting cannot have.
 */
export function readBackendConfig(occurrences: readonly string[]): BackendConfig {
  const numbers: OnnxNumbers = { defaultMaxBatchSize: DEFAULT_MAX_BATCH_SIZE }
  const processes = { python: NO_SETTINGS, pytorch: NO_SETTINGS }
  const ineffective: string[] = []
  for (const text of occurrences) {
    const found = /^(?:(?<backend>[^,=]*),)?(?<setting>[^=]+)=(?<value>.*)$/.exec(text)?.groups
    if (found === undefined) throw refusal(text, 'want BACKEND,SETTING=VALUE')
    const { backend = '', setting = '', value = '' } = found
    const known = ONNX_NUMBERS[`${backend},${setting}`]
    const changed = isOfProcesses(backend)
      ? withSetting(processes[backend], { text, setting, value })
      : undefined
    if (known !== undefined) numbers[known[0]] = readNumber(text, value, known[1], MOST_ITEMS)
    else if (changed === undefined || !isOfProcesses(backend)) ineffective.push(text)
    else processes[backend] = changed
  }
  const { defaultMaxBatchSize, ...onnxruntime } = numbers
  return { defaultMaxBatchSize, ...processes, onnxruntime, ineffective }
}

function isOfProcesses(backend: string): backend is 'python' | 'pytorch' {
  return backend === 'python' || backend === 'pytorch'
}

/** @returns undefined for a setting that there is not here. */
function withSetting(
  options: ProcessOptions,
  o: { readonly text: string; readonly setting: string; readonly value: string },
): ProcessOptions | undefined {
  const { text, setting, value } = o
  if (setting === 'interpreter') {
    if (value === '') throw refusal(text, 'want a program on PATH or a path')
    return { ...options, interpreter: value }
  }
  const known = PYTHON_NUMBERS[setting]
  if (known === undefined) return undefined
  const { field, unit, least, most } = known
  const number = readNumber(text, value, least, most) * unit
  return { ...options, settings: { ...options.settings, [field]: number } }
}

function readNumber(text: string, value: string, least: number, most: number): number {
  const number = Number(value)
  if (/^\d+$/.test(value) && number >= least && number <= most) return number
  throw refusal(text, `'${value}', want a whole number from ${least} to ${most}`)
}

function refusal(text: string, want: string): ServeError {
  return flagRefusal('--backend-config', `"${text}": ${want}`)
}
