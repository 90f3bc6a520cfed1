import { z } from 'zod'

/** A list in the schema of a result. */
export function listOf<T extends z.ZodType>(item: T) {
  return z.array(item).readonly()
}

/** A figure in a result: null if it is not known or no number, which JSON does not have. */
export function known(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null
}
