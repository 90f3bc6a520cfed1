import { createHash } from 'node:crypto'

/**
 * Computes how a heartbeat calls the answer to `describe`: a router can tell a newer answer, and one that the step never gave,
 * from the one that is meant.
 *
 * @param description - JSON, made or parsed: the same either way.
 */
export function descriptionDigest(description: unknown): string {
  const text = JSON.stringify(description ?? null)
  return createHash('sha256').update(text).digest('base64url')
}
