/**
 * Finds the shortest way from `start` to `goal`.
 *
 * @returns the names on the way, with both ends; undefined if there is no way.
 */
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
 * Removes the settled members from `open`, round by round, until a round removes none.
 *
 * @returns the removed members, in the order in which they were removed.
 */
export function settle<T>(open: Set<T>, isSettled: (member: T) => boolean): readonly T[] {
  const settled = new Set<T>()
  for (let size = -1; size !== open.size; ) {
    size = open.size
    for (const member of open) if (isSettled(member) && open.delete(member)) settled.add(member)
  }
  return [...settled]
}
