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

/**
 * Finds steps that wait for one another.
 *
 * @param waits - for each step, the indexes of the steps that it waits for, to read their outputs or by `dependsOn`.
 * @returns the indexes of the steps of one cycle, in the order in which they wait, from the least index; undefined if there is
 *   no cycle.
 */
export function findStepCycle(
  waits: readonly (readonly number[])[],
): readonly number[] | undefined {
  const open = new Set(waits.keys())
  settle(open, (one) => !waits[one]?.some((other) => open.has(other)))
  let [step] = open
  if (step === undefined) return undefined
  // Every open step waits for an open one, so that the way closes.
  const way: number[] = []
  while (!way.includes(step)) {
    way.push(step)
    step = waits[step]?.find((other) => open.has(other)) ?? step
  }
  const cycle = way.slice(way.indexOf(step))
  const least = cycle.indexOf(Math.min(...cycle))
  return [...cycle.slice(least), ...cycle.slice(0, least)]
}
