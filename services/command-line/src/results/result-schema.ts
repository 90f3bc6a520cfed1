import { z } from 'zod'

/** Defines a read-only list in the schema of a result. */
export function readonlyListOf<T extends z.ZodType>(item: T) {
  return z.array(item).readonly()
}

/** Converts a figure for a JSON result: null if it is unknown, infinite or NaN. */
export function known(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null
}
