import { LineBudget, type LogLimit } from './line-budget.ts'
import { type LogFields, type Logger, toLogger } from './log.ts'
import type { LogLevel } from './log-settings.ts'

/** Characters of one text field; the texts of others may be as long as a message. */
const TEXT_LIMIT = 1024

/** Budgets of one logger: lines with further keys share one more. */
const MAX_BUDGETS = 10_000
const FURTHER = 'lines with further keys'

/** Names the budget that a line counts against; undefined for a line that is never left out. */
export type BudgetKey = (message: string, fields: LogFields, level: LogLevel) => string | undefined

/** Gives each message a budget of its own. Debug lines have none, so they are never left out. */
export const exceptDetails: BudgetKey = (message, _fields, level) =>
  level === 'debug' ? undefined : message

/** Gives each message about each model a budget of its own, so that the start of many models is logged in full. */
export const ofEachModel: BudgetKey = (message, { model }) =>
  typeof model === 'string' ? `${message} ${model}` : message

/**
 * Makes a logger that bounds the lines which others can cause. Each message has a budget of lines. Lines beyond it are counted in
 * the field `suppressed` of the next line from that budget. Texts in fields are cut after 1,024 characters.
 *
 * @param keyOf - chooses budgets other than one for each message.
 */
export function limitLog(log: Logger, limit: LogLimit, keyOf: BudgetKey = (text) => text): Logger {
  return limited(log, { limit, keyOf, budgets: new Map() })
}

/** Limits that a logger shares with its children. */
interface Budgets {
  readonly limit: LogLimit
  readonly keyOf: BudgetKey
  readonly budgets: Map<string, LineBudget>
}

function limited(log: Logger, o: Budgets): Logger {
  return toLogger({
    settings: log.settings,
    write: (level, message, fields = {}) => {
      const suppressed = take(o, o.keyOf(message, fields, level))
      if (suppressed === undefined) return
      const line = cutTexts(fields)
      log[level](message, suppressed === 0 ? line : { ...line, suppressed })
    },
    child: (fields) => limited(log.child(fields), o),
  })
}

function take({ limit, budgets }: Budgets, key: string | undefined): number | undefined {
  if (key === undefined) return 0
  const own = budgets.size < MAX_BUDGETS || budgets.has(key) ? key : FURTHER
  const budget = budgets.get(own) ?? new LineBudget(limit)
  budgets.set(own, budget)
  return budget.take()
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
