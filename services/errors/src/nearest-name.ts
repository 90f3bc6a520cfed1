/**
 * Finds the known name that is the fewest edits away, for "did you mean".
 *
 * @returns undefined if none is nearer than half of its own length: such a guess would only confuse.
 */
export function nearestName(written: string, known: Iterable<string>): string | undefined {
  let nearest: string | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const name of known) {
    const edits = name.startsWith(written) ? 1 : countEdits(written, name)
    if (edits < fewest && edits <= name.length / 2) {
      nearest = name
      fewest = edits
    }
  }
  return nearest
}

/** Computes the Levenshtein distance, two rows at a time. */
function countEdits(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      const replaced = (previous[column - 1] ?? 0) + (isSame ? 0 : 1)
      const inserted = (current[column - 1] ?? 0) + 1
      const removed = (previous[column] ?? 0) + 1
      current.push(Math.min(replaced, inserted, removed))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}
