import type { PythonEngineOptions, PythonSettings } from '@tutti/backends'
import { flagRefusal } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** Of a backend whose models run in Python processes. */
type ProcessOptions = Pick<PythonEngineOptions, 'interpreter' | 'settings'>

/** Settings of backends that came as `--backend-config`. */
export interface BackendConfig {
  /** `max_batch_size` of a model that can batch and names none. */
  readonly defaultMaxBatchSize: number
  readonly python: ProcessOptions
  readonly pytorch: ProcessOptions
}

/** A setting of Python processes that is a number. */
interface NumberSetting {
  readonly field: keyof PythonSettings
  /** What one of it is in the engine's settings. */
  readonly unit: number
  readonly least: number
  readonly most: number
}

const NO_SETTINGS: ProcessOptions = { settings: {} }
const DEFAULT_MAX_BATCH_SIZE = 4
const SIZE = 'default-max-batch-size'
const MOST_SECONDS = 86_400
const MOST_BYTES = 2 ** 40
const PYTHON_NUMBERS: Readonly<Record<string, NumberSetting>> = {
  'stub-timeout-seconds': { field: 'loadMs', unit: 1000, least: 1, most: MOST_SECONDS },
  'finalize-timeout-seconds': { field: 'finalizeMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'abandoned-timeout-seconds': { field: 'abandonedMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'unanswered-timeout-seconds': { field: 'unansweredMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'shm-default-byte-size': { field: 'idleBytes', unit: 1, least: 0, most: MOST_BYTES },
  'shm-max-byte-size': { field: 'arenaBytes', unit: 1, least: 2 ** 20, most: MOST_BYTES },
}

/**
 * Reads tritonserver's `--backend-config=BACKEND,SETTING=VALUE`; an empty backend means all of them. The last of a setting holds.
 *
 * @throws ServeError FLAG_INVALID for settings that are not known here: none is accepted and ignored.
 */
export function readBackendConfig(occurrences: readonly string[]): BackendConfig {
  let defaultMaxBatchSize = DEFAULT_MAX_BATCH_SIZE
  const processes = { python: NO_SETTINGS, pytorch: NO_SETTINGS }
  for (const text of occurrences) {
    const found = /^(?<backend>[^,]*),(?<setting>[^=]+)=(?<value>.*)$/.exec(text)?.groups
    if (found === undefined) throw refusal(text, 'want BACKEND,SETTING=VALUE')
    const { backend, setting = '', value = '' } = found
    if (backend === 'python' || backend === 'pytorch') {
      processes[backend] = withSetting(processes[backend], { text, setting, value })
    } else if (backend !== 'onnxruntime' && backend !== '') {
      const want = 'want onnxruntime, python or pytorch'
      throw refusal(text, `backend '${backend}' takes no settings here, ${want}`)
    } else if (setting !== SIZE) {
      throw refusal(text, `unknown setting '${setting}', want ${SIZE}`)
    } else defaultMaxBatchSize = readNumber(text, value, 0, 2 ** 31 - 1)
  }
  return { defaultMaxBatchSize, ...processes }
}

function withSetting(
  options: ProcessOptions,
  o: { readonly text: string; readonly setting: string; readonly value: string },
): ProcessOptions {
  const { text, setting, value } = o
  if (setting === 'interpreter') {
    if (value === '') throw refusal(text, 'want a program on PATH or a path')
    return { ...options, interpreter: value }
  }
  const known = PYTHON_NUMBERS[setting]
  if (known === undefined) {
    const all = ['interpreter', ...Object.keys(PYTHON_NUMBERS)].join(', ')
    throw refusal(text, `unknown setting '${setting}', want one of ${all}`)
  }
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
