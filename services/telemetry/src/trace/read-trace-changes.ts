import { ServeError } from '@tutti/errors'
import type { TraceChanges, TraceLevel, TraceSettings } from './trace-settings.ts'

/** Values of one name, as both protocols have them; empty to return to what is inherited. */
export type WrittenTraceSettings = ReadonlyMap<string, readonly string[]>

/**
 * Reads what is to change, in Triton's order of checks and with its texts. Unknown names and levels are ignored, as there.
 *
 * @throws ServeError UNSUPPORTED for the file, INVALID_PARAMETER.
 */
export function readTraceChanges(settings: WrittenTraceSettings): TraceChanges {
  if (settings.has('trace_file')) {
    const text = 'trace file location can not be updated through network protocol'
    throw new ServeError('UNSUPPORTED', text)
  }
  const level = settings.get('trace_level')
  const rate = settings.get('trace_rate')
  const count = settings.get('trace_count')
  const frequency = settings.get('log_frequency')
  return {
    ...(level && { level: level.length === 0 ? undefined : toLevels(level) }),
    ...(rate && { rate: toNumber('trace_rate', rate, UINT32) }),
    ...(count && { count: toNumber('trace_count', count, INT32) }),
    ...(frequency && { logFrequency: toNumber('log_frequency', frequency, UINT32) }),
  }
}

/** @throws ServeError INVALID_PARAMETER if OFF does not stand alone. */
export function toLevels(words: readonly string[]): readonly TraceLevel[] {
  if (words.includes('OFF') && words.length > 1) {
    throw invalid("Expect only one trace level 'OFF' is specified")
  }
  return (['TIMESTAMPS', 'TENSORS'] as const).filter((level) => words.includes(level))
}

interface Range {
  readonly min: number
  readonly max: number
}

const UINT32: Range = { min: 0, max: 2 ** 32 - 1 }
const INT32: Range = { min: -1, max: 2 ** 31 - 1 }

/** @throws ServeError INVALID_PARAMETER */
function toNumber(name: string, words: readonly string[], { min, max }: Range): number | undefined {
  if (words.length > 1) throw invalid(`expect only 1 value for '${name}'`)
  const [word] = words
  if (word === undefined) return undefined
  const got = word.slice(0, 200)
  // As its parser: what follows the number is not read.
  const digits = /^\s*([+-]?\d+)/.exec(word)?.[1]
  if (digits === undefined) throw invalid(`Unable to parse '${name}', got: ${got}`)
  const value = Number(digits)
  if (value >= min && value <= max) return value
  if (name === 'trace_count' && value < min && value >= -(2 ** 31)) {
    throw invalid(`Unable to parse 'trace_count'. Expecting value >= -1, got: ${got}`)
  }
  throw invalid(`Unable to parse '${name}', value is out of range [ ${min}, ${max} ], got: ${got}`)
}

function invalid(text: string): ServeError {
  return new ServeError('INVALID_PARAMETER', text)
}

/** Returns all settings by their names in the protocol, in Triton's order. @param model - '' for all. */
export function writtenTraceSettings(
  settings: TraceSettings,
  model: string,
): ReadonlyMap<string, readonly string[]> {
  const { level, rate, count, logFrequency } = settings.valuesOf(model)
  return new Map([
    ['trace_level', level.length === 0 ? ['OFF'] : level],
    ['trace_rate', [String(rate)]],
    ['trace_count', [String(count)]],
    ['log_frequency', [String(logFrequency)]],
    ['trace_file', [settings.file]],
    ['trace_mode', ['triton']],
  ])
}
