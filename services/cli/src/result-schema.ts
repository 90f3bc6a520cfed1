import { z } from 'zod'

/** A list in the schema of a result. */
export function listOf<T extends z.ZodType>(item: T) {
  return z.array(item).readonly()
}

/** A result as JSON, for people who look at it too. Ends with a line end. */
export function renderJson(result: object): string {
  return `${JSON.stringify(result, undefined, 2)}\n`
}
