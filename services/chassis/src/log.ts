import { type DestinationStream, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
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
  return new PinoLines(pino(options, o.destination ? toStream(o.destination) : openStdout()))
}

/** pino's own default writes in the background: the last lines before an exit are lost, or come in another order. */
function openStdout(): DestinationStream {
  return pino.destination({ dest: 1, sync: true })
}

/** Writes nothing; for tests and for library use without logs. */
export const silentLogger: Logger = {
  error: () => {},
  warn: () => {},
  info: () => {},
  debug: () => {},
  child: () => silentLogger,
  isDebug: false,
}

class PinoLines implements Logger {
  readonly #lines: PinoLogger
  readonly isDebug: boolean

  constructor(lines: PinoLogger) {
    this.#lines = lines
    this.isDebug = lines.isLevelEnabled('debug')
  }

  error(message: string, fields?: LogFields): void {
    this.#write('error', message, fields)
  }

  warn(message: string, fields?: LogFields): void {
    this.#write('warn', message, fields)
  }

  info(message: string, fields?: LogFields): void {
    this.#write('info', message, fields)
  }

  debug(message: string, fields?: LogFields): void {
    if (this.isDebug) this.#write('debug', message, fields)
  }

  child(fields: LogFields): Logger {
    return new PinoLines(this.#lines.child(toLineFields(fields)))
  }

  #write(level: LogLevel, message: string, fields: LogFields | undefined): void {
    if (!this.#lines.isLevelEnabled(level)) return
    this.#lines[level](fields === undefined ? {} : toLineFields(fields), message)
  }
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

function toStream(destination: { write(line: string): unknown }): DestinationStream {
  return { write: (line) => void destination.write(line) }
}
