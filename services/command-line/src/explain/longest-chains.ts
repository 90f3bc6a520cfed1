/** The longest chain of steps, each waiting for the one before, that ends with a certain step. */
export interface Chain {
  readonly length: number
  /** Index of the step before the last one; undefined if the chain has one step. */
  readonly before: number | undefined
}

/**
 * Finds for each step a longest chain that ends with the step. It does not recurse, since a chain may have as many steps as the
 * ensemble.
 *
 * @param waitsFor - by step, the indexes of the steps that it waits for, each once and without a circle.
 * @returns chains by step.
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

/** Finds the step with the longest chain, the first of several; undefined for no steps. */
export function longestOf(
  indexes: readonly number[],
  chains: readonly Chain[],
): number | undefined {
  const lengthOf = (index: number): number => chains[index]?.length ?? 0
  const [first, ...rest] = indexes
  if (first === undefined) return undefined
  return rest.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a), first)
}

/** Lists the steps of the chain that ends with a step, from its first to its last. */
export function chainTo(last: number | undefined, chains: readonly Chain[]): readonly number[] {
  const chain: number[] = []
  for (let at = last; at !== undefined; at = chains[at]?.before) chain.push(at)
  return chain.toReversed()
}
