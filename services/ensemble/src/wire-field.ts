import { ServeError } from '@tutti/errors'
import { z } from 'zod'

/** An error for JSON of another process that is not what it should be. */
export function wireError(
  what: string,
  field: string,
  problem: string,
  cause?: unknown,
): ServeError {
  const where = field === '' ? what : `${what}: ${field}`
  return new ServeError('MALFORMED_MESSAGE', `${where}: ${problem}`, { details: { field }, cause })
}

/** @throws ServeError MALFORMED_MESSAGE with the first field that does not fit, as a path. */
export function parseWire<T>(what: string, schema: z.ZodType<T>, json: unknown): T {
  const { success, data, error } = schema.safeParse(json)
  if (success) return data
  const [issue] = error.issues
  const field = issue === undefined ? '' : z.core.toDotPath(issue.path)
  throw wireError(what, field, issue?.message ?? 'it does not fit', error)
}
