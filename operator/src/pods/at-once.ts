/**
 * Works on all items, a number of them at a time. One that takes long holds up nothing but its own lane.
 *
 * @param work - does not throw.
 */
export async function atOnce<T>(
  items: Iterable<T>,
  most: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  const lane = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: most }, lane))
}
