import { LineBudget, type LogLimit } from './line-budget.ts'
import type { LogFields, Logger, LogLevel } from './log.ts'

/** Characters of one text field; the texts of others may be as long as a message. */
const TEXT_LIMIT = 1024

/**
 * A logger for lines that others can cause as often as they like: each message has a budget of lines, and what is over it is
 * counted in the field `suppressed` of the next line with that message. Long texts in fields are cut.
 */
export function limitLog(log: Logger, limit: LogLimit): Logger {
  return new LimitedLog(log, limit, new Map())
}

class LimitedLog implements Logger {
  readonly #log: Logger
  readonly #limit: LogLimit
  /** By message: a constant each, so that there are few. Shared with the children. */
  readonly #budgets: Map<string, LineBudget>

  constructor(log: Logger, limit: LogLimit, budgets: Map<string, LineBudget>) {
    this.#log = log
    this.#limit = limit
    this.#budgets = budgets
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
    return new LimitedLog(this.#log.child(fields), this.#limit, this.#budgets)
  }

  #write(level: LogLevel, message: string, fields: LogFields = {}): void {
    const suppressed = this.#take(message)
    if (suppressed === undefined) return
    const line = cutTexts(fields)
    this.#log[level](message, suppressed === 0 ? line : { ...line, suppressed })
  }

  /** @returns how many were left out before this line; undefined if it is to be left out too. */
  #take(message: string): number | undefined {
    const budget = this.#budgets.get(message) ?? new LineBudget(this.#limit)
    this.#budgets.set(message, budget)
    return budget.take()
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
