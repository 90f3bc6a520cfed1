import type { Clock } from './clock.ts'
import type { LogFields, Logger, LogLevel } from './log.ts'

/** How much of what others cause is logged. */
export interface LogLimit {
  readonly clock: Pick<Clock, 'now'>
  /** Lines with one message that may come at once; default 100: every replica of a large installation that restarts. */
  readonly lines?: number
  /** Milliseconds until one more may come; default 1000. */
  readonly everyMs?: number
}

/** Characters of one text field; the texts of others may be as long as a message. */
const TEXT_LIMIT = 1024

interface Bucket {
  left: number
  filledAt: number
  suppressed: number
}

/**
 * A logger for lines that others can cause as often as they like: each message has a bucket of lines, and what is over it is
 * counted in the field `suppressed` of the next line with that message. Long texts in fields are cut.
 */
export function limitLog(log: Logger, limit: LogLimit): Logger {
  return new LimitedLog(log, limit, new Map())
}

class LimitedLog implements Logger {
  readonly #log: Logger
  readonly #limit: LogLimit
  /** By message: a constant each, so that there are few. Shared with the children. */
  readonly #buckets: Map<string, Bucket>

  constructor(log: Logger, limit: LogLimit, buckets: Map<string, Bucket>) {
    this.#log = log
    this.#limit = limit
    this.#buckets = buckets
  }

  get isDebug(): boolean {
    return this.#log.isDebug
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
    return new LimitedLog(this.#log.child(fields), this.#limit, this.#buckets)
  }

  #write(level: LogLevel, message: string, fields: LogFields = {}): void {
    const suppressed = this.#take(message)
    if (suppressed === undefined) return
    const line = cutTexts(fields)
    this.#log[level](message, suppressed === 0 ? line : { ...line, suppressed })
  }

  /** @returns how many were left out before this line; undefined if it is to be left out too. */
  #take(message: string): number | undefined {
    const { clock, lines = 100, everyMs = 1000 } = this.#limit
    const now = clock.now()
    const bucket = this.#buckets.get(message) ?? { left: lines, filledAt: now, suppressed: 0 }
    this.#buckets.set(message, bucket)
    bucket.left = Math.min(lines, bucket.left + (now - bucket.filledAt) / everyMs)
    bucket.filledAt = now
    if (bucket.left < 1) {
      bucket.suppressed += 1
      return undefined
    }
    const { suppressed } = bucket
    bucket.left -= 1
    bucket.suppressed = 0
    return suppressed
  }
}

function cutTexts(fields: LogFields): LogFields {
  if (!Object.values(fields).some(isLong)) return fields
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isLong(value) ? cut(value) : value]),
  )
}

function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length > TEXT_LIMIT
}

function cut(text: string): string {
  return `${text.slice(0, TEXT_LIMIT)}… (${text.length} characters)`
}
