const MADE_FROM = new WeakMap<object, readonly unknown[]>()

/**
 * Returns the former value if it was made from the very same objects; else makes a new one. A change of one model then costs
 * only what depends on that model.
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
