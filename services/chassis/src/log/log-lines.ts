import { describeError } from '../text/describe-error.ts'
import type { LogFields, LogFormat, LogLevel } from './log-settings.ts'

/** The content of one line. */
export interface LogLine {
  readonly level: LogLevel
  readonly time: Date
  /** Name of the executable. */
  readonly service: string
  readonly message: string
  readonly fields: LogFields
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['level', 'time', 'service', 'message'])

/** Converts fields to the form that is written: errors are described, and names of the line's own fields get a trailing `_`. */
export function toLineFields(fields: LogFields): Record<string, unknown> {
  const line: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(fields)) {
    line[OWN_FIELDS.has(key) ? `${key}_` : key] =
      value instanceof Error ? describeError(value) : value
  }
  return line
}

/** Verbose lines are those of level I, as in tritonserver. */
const SEVERITY: Readonly<Record<LogLevel, string>> = {
  error: 'E',
  warn: 'W',
  info: 'I',
  debug: 'I',
}

/**
 * Formats a line in one of tritonserver's forms: severity, time, process, place, and the message as a JSON string. The place is
 * the name of the program in place of a source file. The fields follow as JSON.
 */
export function formatTritonLine(line: LogLine, format: Exclude<LogFormat, 'json'>): string {
  const { level, time, service, message, fields } = line
  const severity = SEVERITY[level]
  const iso = time.toISOString()
  const head =
    format === 'ISO8601'
      ? `${iso.slice(0, 19)}Z ${severity}`
      : `${severity}${iso.slice(5, 7)}${iso.slice(8, 10)} ${iso.slice(11, 23)}000`
  const rest = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`
  return `${head} ${process.pid} ${service}:0] ${JSON.stringify(message)}${rest}\n`
}

/** Characters that JSON leaves as they are, and that some readers of lines take for an end. */
const OTHER_LINE_ENDS = /[\u0085\u2028\u2029]/g

/**
 * Escapes Unicode line ends, which JSON leaves as they are. A client could otherwise write whole log lines of its own through a
 * name.
 */
export function toOneLine(line: string): string {
  return line.replace(OTHER_LINE_ENDS, (end) => {
    return `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
