import { createHash } from 'node:crypto'

/**
 * Computes the digest by which heartbeats name the answer to `describe`: so a router can tell it from a newer answer, and from
 * one that the step never gave.
 *
 * @param description - JSON, made or parsed: the same either way.
 */
export function descriptionDigest(description: unknown): string {
  const text = JSON.stringify(description ?? null)
  return createHash('sha256').update(text).digest('base64url')
}
