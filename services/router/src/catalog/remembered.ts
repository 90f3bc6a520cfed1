const MADE_FROM = new WeakMap<object, readonly unknown[]>()

/**
 * Makes a value that never changes, or takes the one of before if it was made from the very same objects: a change of one model
 * then costs what depends on it, and not everything that is served.
 *
 * @param from - everything that `make` reads; compared by identity.
 */
export function remembered<T extends object>(
  before: T | undefined,
  from: readonly unknown[],
  make: () => T,
): T {
  const known = before && MADE_FROM.get(before)
  const isSame = known?.length === from.length && known.every((one, i) => one === from[i])
  if (before !== undefined && isSame) return before
  const made = make()
  MADE_FROM.set(made, from)
  return made
}
