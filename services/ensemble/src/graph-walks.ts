/** The names from `start` to `goal`, by the shortest way; undefined if there is none. */
export function findWay(
  start: string,
  goal: string,
  next: (name: string) => readonly string[],
): readonly string[] | undefined {
  const ways = new Map<string, readonly string[]>([[start, [start]]])
  for (const [name, way] of ways) {
    if (name === goal) return way
    for (const other of next(name)) if (!ways.has(other)) ways.set(other, [...way, other])
  }
  return undefined
}

/**
 * Takes members out of `open` in its order, again and again, until a round takes out none.
 *
 * @returns them in the order in which they were taken out.
 */
export function settle<T>(open: Set<T>, isSettled: (member: T) => boolean): readonly T[] {
  const settled = new Set<T>()
  for (let size = -1; size !== open.size; ) {
    size = open.size
    for (const member of open) if (isSettled(member) && open.delete(member)) settled.add(member)
  }
  return [...settled]
}
