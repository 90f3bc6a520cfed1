import type { PythonEngineOptions, PythonSettings } from '@tutti/backends'
import { ServeError } from '@tutti/errors'

/** Settings of backends that came as `--backend-config`. */
export interface BackendConfig {
  /** `max_batch_size` of a model that can batch and names none. */
  readonly defaultMaxBatchSize: number
  readonly python: ProcessOptions
  readonly pytorch: ProcessOptions
}

/** Of a backend whose models run in Python processes. */
type ProcessOptions = Pick<PythonEngineOptions, 'interpreter' | 'settings'>

interface Setting {
  /** The flag's value, for messages. */
  readonly text: string
  readonly backend: string
  readonly setting: string
  readonly value: string
}

/** A setting of Python processes that is a number. */
interface NumberSetting {
  readonly field: keyof PythonSettings
  /** What one of it is in the engine's settings. */
  readonly unit: number
  readonly least: number
  readonly most: number
}

const FLAG = '--backend-config'
const DEFAULT_MAX_BATCH_SIZE = 4
const SIZE = 'default-max-batch-size'
const INTERPRETER = 'interpreter'
const MOST_SECONDS = 86_400
const MOST_BYTES = 2 ** 40
const PYTHON_NUMBERS: Readonly<Record<string, NumberSetting>> = {
  'stub-timeout-seconds': { field: 'loadMs', unit: 1000, least: 1, most: MOST_SECONDS },
  'finalize-timeout-seconds': { field: 'finalizeMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'abandoned-timeout-seconds': { field: 'abandonedMs', unit: 1000, least: 0, most: MOST_SECONDS },
  'shm-default-byte-size': { field: 'idleBytes', unit: 1, least: 0, most: MOST_BYTES },
  'shm-max-byte-size': { field: 'arenaBytes', unit: 1, least: 2 ** 20, most: MOST_BYTES },
}
const PYTHON = [INTERPRETER, ...Object.keys(PYTHON_NUMBERS)].join(', ')

const PROCESS_BACKENDS = ['python', 'pytorch']
const runsProcesses = ({ backend }: Setting): boolean => PROCESS_BACKENDS.includes(backend)
const isInterpreter = ({ setting }: Setting): boolean => setting === INTERPRETER

/**
 * Reads tritonserver's `--backend-config=BACKEND,SETTING=VALUE`; an empty backend means all of them.
 *
 * @throws ServeError FLAG_INVALID for settings that are not known here: none is accepted and ignored.
 */
export function readBackendConfig(occurrences: readonly string[]): BackendConfig {
  const settings = occurrences.map(toSetting)
  const sizes = settings.filter((setting) => !runsProcesses(setting)).map(readBatchSize)
  return {
    defaultMaxBatchSize: sizes.at(-1) ?? DEFAULT_MAX_BATCH_SIZE,
    python: readProcessOptions(settings, 'python'),
    pytorch: readProcessOptions(settings, 'pytorch'),
  }
}

function readProcessOptions(settings: readonly Setting[], backend: string): ProcessOptions {
  const own = settings.filter((setting) => setting.backend === backend)
  const interpreter = own.filter(isInterpreter).map(readInterpreter).at(-1)
  const numbers = own.filter((setting) => !isInterpreter(setting)).map(readPython)
  return {
    settings: Object.fromEntries(numbers),
    ...(interpreter !== undefined && { interpreter }),
  }
}

function toSetting(text: string): Setting {
  const found = /^(?<backend>[^,]*),(?<setting>[^=]+)=(?<value>.*)$/.exec(text)?.groups
  if (found === undefined) throw refusal(text, 'want BACKEND,SETTING=VALUE')
  const { backend = '', setting = '', value = '' } = found
  return { text, backend, setting, value }
}

/** The one setting of the other backends. */
function readBatchSize({ text, backend, setting, value }: Setting): number {
  if (backend !== 'onnxruntime' && backend !== '') {
    throw refusal(
      text,
      `backend '${backend}' takes no settings here, want onnxruntime, python or pytorch`,
    )
  }
  if (setting !== SIZE) throw refusal(text, `unknown setting '${setting}', want ${SIZE}`)
  return readNumber(text, value, 0, 2 ** 31 - 1)
}

function readPython({ text, setting, value }: Setting): readonly [keyof PythonSettings, number] {
  const known = PYTHON_NUMBERS[setting]
  if (known === undefined)
    throw refusal(text, `unknown setting '${setting}', want one of ${PYTHON}`)
  const { field, unit, least, most } = known
  return [field, readNumber(text, value, least, most) * unit]
}

function readInterpreter({ text, value }: Setting): string {
  if (value === '') throw refusal(text, 'want a program on PATH or a path')
  return value
}

function readNumber(text: string, value: string, least: number, most: number): number {
  const number = Number(value)
  if (/^\d+$/.test(value) && number >= least && number <= most) return number
  throw refusal(text, `'${value}', want a whole number from ${least} to ${most}`)
}

function refusal(text: string, want: string): ServeError {
  return new ServeError('FLAG_INVALID', `flag ${FLAG}: "${text}": ${want}`, {
    details: { field: FLAG },
  })
}
