import { LineBudget, type LogLimit } from './line-budget.ts'
import { type LogFields, type Logger, toLogger } from './log.ts'

/** Characters of one text field; the texts of others may be as long as a message. */
const TEXT_LIMIT = 1024

/**
 * A logger for lines that others can cause as often as they like: each message has a budget of lines, and what is over it is
 * counted in the field `suppressed` of the next line with that message. Long texts in fields are cut.
 */
export function limitLog(log: Logger, limit: LogLimit): Logger {
  return limited(log, limit, new Map())
}

/** @param budgets - by message: a constant each, so that there are few. Shared with the children. */
function limited(log: Logger, limit: LogLimit, budgets: Map<string, LineBudget>): Logger {
  return toLogger({
    isDebug: log.isDebug,
    write: (level, message, fields = {}) => {
      const budget = budgets.get(message) ?? new LineBudget(limit)
      budgets.set(message, budget)
      const suppressed = budget.take()
      if (suppressed === undefined) return
      const line = cutTexts(fields)
      log[level](message, suppressed === 0 ? line : { ...line, suppressed })
    },
    child: (fields) => limited(log.child(fields), limit, budgets),
  })
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
