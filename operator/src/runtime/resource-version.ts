const DIGITS = /^\d+$/

/**
 * True if `one` is certainly an older resourceVersion than `other`, of the same resource. They are compared as decimal
 * numbers, which Kubernetes promises since 1.35; what is no number is never older.
 */
export function isOlderVersion(one: string, other: string): boolean {
  if (!DIGITS.test(one) || !DIGITS.test(other)) return false
  return one.length === other.length ? one < other : one.length < other.length
}

/** True if the cached object is older than an answer of the server. */
export function isBehind(
  cached: { readonly metadata: { readonly resourceVersion: string } },
  answered: { readonly resourceVersion: string },
): boolean {
  return isOlderVersion(cached.metadata.resourceVersion, answered.resourceVersion)
}
