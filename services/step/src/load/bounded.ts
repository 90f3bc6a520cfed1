/** Maps items with at most `limit` at a time. Results keep the order of the items; the first rejection rejects all. */
export async function mapBounded<T, R>(
  items: readonly T[],
  limit: number,
  map: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const queue = items.entries()
  const runs = Array.from({ length: Math.min(limit, items.length) }, async () => {
    for (const [index, item] of queue) results[index] = await map(item)
  })
  await Promise.all(runs)
  return results
}
