import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
import { describeError } from './describe-error.ts'

export type LogLevel = 'error' | 'warn' | 'info' | 'debug'

/** What a line says beside its message. Errors are described with their causes, a Secret prints `[redacted]`. */
export type LogFields = Readonly<Record<string, unknown>>

/**
 * Writes JSON lines. The message is a constant in lower case; what varies goes into fields.
 * Names that a line uses itself (level, time, service, message) get a trailing `_` when a field has them.
 */
export interface Logger {
  error(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  debug(message: string, fields?: LogFields): void
  /** A logger whose every line carries `fields` too. */
  child(fields: LogFields): Logger
  /** True if debug lines are written, so that a hot path need not build fields for nothing. */
  readonly isDebug: boolean
}

export interface LoggerOptions {
  readonly level: LogLevel
  /** The executable, as `service` on each line. */
  readonly name: string
  /** Takes whole lines with their line end; stdout, written synchronously, if absent. */
  readonly destination?: { write(line: string): unknown }
}

/** Makes the logger of an executable. Lines: `{"level","time" (ISO),"service",...fields,"message"}`. */
export function createLogger(o: LoggerOptions): Logger {
  const options = {
    level: o.level,
    base: { service: o.name },
    messageKey: 'message',
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const destination = o.destination ?? openStdout()
  return fromPino(pino(options, { write: (line) => void destination.write(line) }))
}

/** Lines that could not be written are kept up to this many bytes, and written with the next one; further ones are dropped. */
const UNWRITTEN_BYTES = 1024 * 1024

function openStdout(): { write(line: string): unknown } {
  // pino's own default writes in the background: the last lines before an exit are lost, or come in another order.
  const stdout = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_BYTES })
  // A full disk, or nobody who reads: a server outlives its log.
  stdout.on('error', () => {})
  return stdout
}

/** A logger whose four levels end in one function. */
export function toLogger(o: {
  readonly isDebug: boolean
  write(level: LogLevel, message: string, fields: LogFields | undefined): void
  child(fields: LogFields): Logger
}): Logger {
  return {
    error: (message, fields) => o.write('error', message, fields),
    warn: (message, fields) => o.write('warn', message, fields),
    info: (message, fields) => o.write('info', message, fields),
    debug: (message, fields) => {
      if (o.isDebug) o.write('debug', message, fields)
    },
    child: (fields) => o.child(fields),
    isDebug: o.isDebug,
  }
}

/** Writes nothing; for tests and for library use without logs. */
export const silentLogger: Logger = toLogger({
  isDebug: false,
  write: () => {},
  child: () => silentLogger,
})

function fromPino(lines: PinoLogger): Logger {
  return toLogger({
    isDebug: lines.isLevelEnabled('debug'),
    write: (level, message, fields) => {
      if (!lines.isLevelEnabled(level)) return
      lines[level](fields === undefined ? {} : toLineFields(fields), message)
    },
    child: (fields) => fromPino(lines.child(toLineFields(fields))),
  })
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['level', 'time', 'service', 'message'])

function toLineFields(fields: LogFields): Record<string, unknown> {
  const line: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(fields)) {
    line[OWN_FIELDS.has(key) ? `${key}_` : key] =
      value instanceof Error ? describeError(value) : value
  }
  return line
}
