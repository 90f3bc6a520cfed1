import { ServeError } from '@tutti/errors'

/** The error for a flag that was read and cannot be used. @param flag - with its dashes. */
export function flagRefusal(flag: string, problem: string, cause?: unknown): ServeError {
  return new ServeError('FLAG_INVALID', `${flag}: ${problem}`, { cause, details: { field: flag } })
}

/**
 * Reads the occurrences of a flag that are pairs, split at their first `=`.
 *
 * @param wanted - e.g. `NAME=DIR`.
 * @throws ServeError FLAG_INVALID for what is no pair, or a name that comes twice.
 */
export function readPairs(
  flag: string,
  occurrences: readonly string[],
  wanted: string,
): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  for (const text of occurrences) {
    const [, name = '', value = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? []
    if (name === '') throw flagRefusal(flag, `"${text}", want ${wanted}`)
    if (pairs.has(name)) throw flagRefusal(flag, `"${name}" came twice, want a name once`)
    pairs.set(name, value)
  }
  return pairs
}
