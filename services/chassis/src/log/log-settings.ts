export type LogLevel = 'error' | 'warn' | 'info' | 'debug'

/** Fields of a line beside its message. Errors are described with their causes, a Secret prints `[redacted]`. */
export type LogFields = Readonly<Record<string, unknown>>

/** JSON lines, or the two line forms of tritonserver. */
export const LOG_FORMATS = ['json', 'default', 'ISO8601'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** Settings of what a logger and all its children write. They may change while the loggers are used. */
export interface LogSettings {
  /** Path of the log file; '' for standard output. It is read once, when the logger is made. */
  readonly file: string
  error: boolean
  warning: boolean
  info: boolean
  /** Above 0: lines of level debug. */
  verboseLevel: number
  format: LogFormat
}

export type ChangeableLogSettings = Omit<LogSettings, 'file'>

/** Makes settings that write lines of this level and of more severe ones. */
export function settingsOfLevel(level: LogLevel): LogSettings {
  return {
    file: '',
    error: true,
    warning: level !== 'error',
    info: level === 'info' || level === 'debug',
    verboseLevel: level === 'debug' ? 1 : 0,
    format: 'json',
  }
}

export function isWritten(settings: LogSettings, level: LogLevel): boolean {
  if (level === 'debug') return settings.verboseLevel > 0
  if (level === 'info') return settings.info
  return level === 'warn' ? settings.warning : settings.error
}
