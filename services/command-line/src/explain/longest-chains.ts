/** The last step of a longest chain of steps that wait for one another. */
export interface Chain {
  readonly length: number
  /** The step before; undefined for the first. */
  readonly before: number | undefined
}

/**
 * By step: a longest chain of which it is the last. Without recursion: a chain may have as many steps as the ensemble.
 *
 * @param waitsFor - by step: the steps that it waits for, each once; there is no circle.
 */
export function longestChains(waitsFor: readonly (readonly number[])[]): readonly Chain[] {
  const followers: number[][] = waitsFor.map(() => [])
  waitsFor.forEach((others, index) => others.forEach((other) => followers[other]?.push(index)))
  const missing = waitsFor.map((others) => others.length)
  const chains: Chain[] = []
  const ready = [...waitsFor.keys()].filter((index) => missing[index] === 0)
  // A step that becomes ready on the way is appended, and visited too.
  for (const index of ready) {
    const before = longestOf(waitsFor[index] ?? [], chains)
    chains[index] = { length: 1 + (chains[before ?? -1]?.length ?? 0), before }
    for (const next of followers[index] ?? []) {
      missing[next] = (missing[next] ?? 0) - 1
      if (missing[next] === 0) ready.push(next)
    }
  }
  return chains
}

/** The first of the steps with the longest chain; undefined if there is none. */
export function longestOf(
  indexes: readonly number[],
  chains: readonly Chain[],
): number | undefined {
  const lengthOf = (index: number): number => chains[index]?.length ?? 0
  const [first, ...rest] = indexes
  if (first === undefined) return undefined
  return rest.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a), first)
}

/** The steps up to this one, in their order. */
export function chainTo(last: number | undefined, chains: readonly Chain[]): readonly number[] {
  const chain: number[] = []
  for (let at = last; at !== undefined; at = chains[at]?.before) chain.push(at)
  return chain.toReversed()
}
