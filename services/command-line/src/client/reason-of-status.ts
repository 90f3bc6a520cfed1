import type { Reason } from '@tutti/errors'

/** The reasons of servers that name none: Triton, proxies, an API server. */
const REASONS: ReadonlyMap<number, Reason> = new Map([
  [401, 'UNAUTHENTICATED'],
  [403, 'ACCESS_DENIED'],
  [404, 'NOT_FOUND'],
  [429, 'OVERLOADED'],
  [500, 'INTERNAL'],
  [502, 'SERVER_NOT_READY'],
  [503, 'SERVER_NOT_READY'],
  [504, 'DEADLINE_EXCEEDED'],
])

/** Converts an HTTP status to the reason of an error; undefined for a status that tells no reason. */
export function reasonOfStatus(status: number): Reason | undefined {
  return REASONS.get(status)
}
