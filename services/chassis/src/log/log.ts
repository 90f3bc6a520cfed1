import { openSync } from 'node:fs'
import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
import type { StatusLine } from '../terminal/status-line.ts'
import { formatTritonLine, toLineFields, toOneLine } from './log-lines.ts'
import {
  isWritten,
  type LogFields,
  type LogLevel,
  type LogSettings,
  settingsOfLevel,
} from './log-settings.ts'

export type { LogFields, LogLevel }

/**
 * Writes JSON lines. The message is a constant in lower case; what varies goes into fields.
 * Names that a line uses itself (level, time, service, message) get a trailing `_` when a field has them.
 */
export interface Logger {
  error(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  debug(message: string, fields?: LogFields): void
  /** Makes a logger that adds `fields` to each line. */
  child(fields: LogFields): Logger
  /** True if debug lines are written, so that a hot path need not build fields for nothing. */
  readonly isDebug: boolean
  /** Settings of what is written; all loggers of one executable have the same. */
  readonly settings: LogSettings
}

export interface LoggerOptions {
  /** Lowest level that is written, where `settings` is absent; default `info`. */
  readonly level?: LogLevel
  readonly settings?: LogSettings
  /** Name of the executable: the field `service` of each line. */
  readonly name: string
  /** Output for whole lines with their line ends. If absent, lines go synchronously to the file of the settings, or to stdout. */
  readonly destination?: { write(line: string): unknown }
  /** Status line of the same terminal: it makes way for each line. */
  readonly statusLine?: Pick<StatusLine, 'clear'> | undefined
}

/**
 * Makes the logger of an executable. Lines: `{"level","time" (ISO),"service",...fields,"message"}`, or those of `formatTritonLine`.
 *
 * @throws Error of the system if the file cannot be opened.
 */
export function createLogger(o: LoggerOptions): Logger {
  const settings = o.settings ?? settingsOfLevel(o.level ?? 'info')
  const options = {
    level: 'debug',
    base: { service: o.name },
    messageKey: 'message',
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const destination = o.destination ?? openOutput(settings.file)
  const { statusLine } = o
  const write = (line: string): void => {
    statusLine?.clear()
    destination.write(toOneLine(line))
  }
  const lines = pino(options, { write })
  return writeTo({ settings, service: o.name, write }, lines, {})
}

/** Lines that could not be written are kept up to this many bytes, and written with the next one; further ones are dropped. */
const UNWRITTEN_BYTES = 1024 * 1024

/** @param file - is appended to; '' for stdout. */
function openOutput(file: string): { write(line: string): unknown } {
  const dest = file === '' ? 1 : openSync(file, 'a')
  // pino's own default writes in the background: the last lines before an exit are lost, or come in another order.
  const output = pino.destination({ dest, sync: true, maxLength: UNWRITTEN_BYTES })
  // A full disk, or nobody who reads: a server outlives its log.
  output.on('error', () => {})
  return output
}

/** Makes a logger from one function that writes the lines of every level. */
export function toLogger(o: {
  readonly settings: LogSettings
  write(level: LogLevel, message: string, fields: LogFields | undefined): void
  child(fields: LogFields): Logger
}): Logger {
  const { settings } = o
  return {
    error: (message, fields) => o.write('error', message, fields),
    warn: (message, fields) => o.write('warn', message, fields),
    info: (message, fields) => o.write('info', message, fields),
    debug: (message, fields) => {
      if (settings.verboseLevel > 0) o.write('debug', message, fields)
    },
    child: (fields) => o.child(fields),
    get isDebug() {
      return settings.verboseLevel > 0
    },
    settings,
  }
}

/** Logger that writes nothing, for tests and for library use without logs. */
export const silentLogger: Logger = toLogger({
  settings: settingsOfLevel('info'),
  write: () => {},
  child: () => silentLogger,
})

interface LineTarget {
  readonly settings: LogSettings
  readonly service: string
  write(line: string): void
}

/** @param lines - of pino, with the fields that every line has. */
function writeTo(target: LineTarget, lines: PinoLogger, common: LogFields): Logger {
  const { settings } = target
  return toLogger({
    settings,
    write: (level, message, fields = {}) => {
      if (!isWritten(settings, level)) return
      const { format } = settings
      if (format === 'json') return lines[level](toLineFields(fields), message)
      const all = { ...common, ...toLineFields(fields) }
      const line = { level, time: new Date(), service: target.service, message, fields: all }
      target.write(formatTritonLine(line, format))
    },
    child: (fields) => {
      const added = toLineFields(fields)
      return writeTo(target, lines.child(added), { ...common, ...added })
    },
  })
}
