import type { ChangeableLogSettings, LogSettings } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

/** A value of one setting as a protocol writes it; undefined if it is none of these. */
export type SettingValue = boolean | number | string | undefined

/** The errors of one protocol for settings that are refused. In Triton each protocol has its own texts. */
export interface SettingTexts {
  refuse(name: string, want: 'boolean' | 'int32' | 'string'): ServeError
  format(got: string): ServeError
}

type Switch = 'info' | 'warning' | 'error'
const SWITCHES: readonly Switch[] = ['info', 'warning', 'error']
const MAX_UINT32 = 2 ** 32 - 1

/**
 * Reads the log settings that a client changes, without applying them. Unknown names are ignored, as in Triton.
 *
 * @param settings - by their names in the protocol; those that are absent stay.
 * @throws ServeError UNSUPPORTED for the file, which only the command line names; INVALID_PARAMETER, MALFORMED_MESSAGE.
 */
export function readLogChanges(
  settings: ReadonlyMap<string, SettingValue>,
  texts: SettingTexts,
): Partial<ChangeableLogSettings> {
  if (settings.has('log_file')) {
    const text = 'log file location can not be updated through network protocol'
    throw new ServeError('UNSUPPORTED', text)
  }
  const changes: Partial<ChangeableLogSettings> = {}
  for (const name of SWITCHES) {
    const value = settings.get(`log_${name}`)
    if (typeof value === 'boolean') changes[name] = value
    else if (settings.has(`log_${name}`)) throw texts.refuse(`log_${name}`, 'boolean')
  }
  if (settings.has('log_verbose_level')) {
    const level = settings.get('log_verbose_level')
    if (!isUint32(level)) throw texts.refuse('log_verbose_level', 'int32')
    changes.verboseLevel = level
  }
  if (settings.has('log_format')) changes.format = toFormat(settings.get('log_format'), texts)
  return changes
}

function isUint32(value: SettingValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_UINT32
}

function toFormat(value: SettingValue, texts: SettingTexts): LogSettings['format'] {
  if (typeof value !== 'string') throw texts.refuse('log_format', 'string')
  if (value === 'json' || value === 'default' || value === 'ISO8601') return value
  throw texts.format(value.slice(0, 200))
}

/** Writes all settings by their names in the protocol, in Triton's order. */
export function writtenLogSettings(settings: LogSettings): Readonly<Record<string, SettingValue>> {
  return {
    log_file: settings.file,
    log_info: settings.info,
    log_warning: settings.warning,
    log_error: settings.error,
    log_verbose_level: settings.verboseLevel,
    log_format: settings.format,
  }
}

export function invalidSetting(text: string): ServeError {
  return new ServeError('INVALID_PARAMETER', text)
}
