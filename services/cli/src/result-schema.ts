import { z } from 'zod'

/** A list in the schema of a result. */
export function listOf<T extends z.ZodType>(item: T) {
  return z.array(item).readonly()
}
