import { isAbsolute } from 'node:path'
import type { EngineSettings } from '@tutti/backends'
import { flagRefusal } from '@tutti/chassis'
import { ENGINES, type EngineSetting, findEngine } from '@tutti/engines'
import type { ServeError } from '@tutti/errors'

/** Settings of backends that came as `--backend-config`. */
export interface BackendConfig {
  /** Default `max_batch_size` of a model that can batch and sets none. */
  readonly defaultMaxBatchSize: number
  /** Settings of each engine, by its backend. */
  readonly settings: ReadonlyMap<string, EngineSettings>
  /** Settings that nothing here uses, as they were given. */
  readonly ineffective: readonly string[]
}

/** A setting of the server, which an engine may name as its own too. */
const SERVERS = { field: 'defaultMaxBatchSize', least: 0, most: 2 ** 31 - 1 } as const
/** Settings that name no backend. */
const COMMON: Readonly<Record<string, EngineSetting>> = { 'default-max-batch-size': SERVERS }
const DEFAULT_MAX_BATCH_SIZE = 4

/** An occurrence of the flag, in parts. */
interface Occurrence {
  readonly text: string
  readonly backend: string
  readonly setting: string
  readonly value: string
}

/**
 * Reads tritonserver's `--backend-config=[BACKEND,]SETTING=VALUE`. Without a backend, or with an empty one, the setting is for
 * all backends. The last value of a setting holds. As in Triton any setting is accepted; those without effect are returned as
 * `ineffective`.
 *
 * @throws ServeError FLAG_INVALID for a value that a setting cannot have.
 */
export function readBackendConfig(occurrences: readonly string[]): BackendConfig {
  let defaultMaxBatchSize = DEFAULT_MAX_BATCH_SIZE
  const settings = new Map<string, EngineSettings>()
  for (const { backend } of ENGINES) settings.set(backend, { settings: {} })
  const ineffective: string[] = []
  for (const text of occurrences) {
    const occurrence = readOccurrence(text)
    const { backend } = occurrence
    const number = readNumber(occurrence)
    const changed = number === undefined && (readInterpreter(occurrence) ?? readLibrary(occurrence))
    const { settings: numbers = {}, ...rest } = settings.get(backend) ?? {}
    if (number?.field === SERVERS.field) defaultMaxBatchSize = number.value
    else if (number !== undefined) {
      settings.set(backend, { ...rest, settings: { ...numbers, [number.field]: number.value } })
    } else if (changed) settings.set(backend, { ...rest, settings: numbers, ...changed })
    else ineffective.push(text)
  }
  return { defaultMaxBatchSize, settings, ineffective }
}

function readOccurrence(text: string): Occurrence {
  const found = /^(?:(?<backend>[^,=]*),)?(?<setting>[^=]+)=(?<value>.*)$/.exec(text)?.groups
  if (found === undefined) throw refusal(text, 'want BACKEND,SETTING=VALUE')
  const { backend = '', setting = '', value = '' } = found
  return { text, backend, setting, value }
}

/** @returns undefined for a setting that is no number here. */
function readNumber({ text, backend, setting, value }: Occurrence) {
  const known = backend === '' ? COMMON : findEngine(backend)?.settings
  const one = known !== undefined && Object.hasOwn(known, setting) ? known[setting] : undefined
  if (one === undefined) return undefined
  const { field, least, most, unit = 1 } = one
  const number = Number(value)
  if (!/^\d+$/.test(value) || number < least || number > most) {
    throw refusal(text, `'${value}', want a whole number from ${least} to ${most}`)
  }
  return { field, value: number * unit }
}

/** @returns undefined for another setting, and for an engine that has no interpreter. */
function readInterpreter({ text, backend, setting, value }: Occurrence) {
  const isKnown = setting === 'interpreter' && findEngine(backend)?.modules !== undefined
  if (!isKnown) return undefined
  if (value === '') throw refusal(text, 'want a program on PATH or a path')
  return { interpreter: value }
}

/** @returns undefined for another setting, and for an engine whose library is its package's. */
function readLibrary({ text, backend, setting, value }: Occurrence) {
  const isKnown = setting === 'library' && findEngine(backend)?.takesLibrary === true
  if (!isKnown) return undefined
  if (!isAbsolute(value))
    throw refusal(text, 'want the absolute path of a library, or of its folder')
  return { library: value }
}

function refusal(text: string, want: string): ServeError {
  return flagRefusal('--backend-config', `"${text}": ${want}`)
}
