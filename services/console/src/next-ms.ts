/** A reading takes a server about 0.06 ms for each of its models, and a page may cost it 1 % of a core. */
const MS_FOR_MODEL = 10

/**
 * Milliseconds until a page asks again: rarer where a server has many models, as each answer reads the whole index.
 *
 * @param leastMs - with few models.
 */
export function nextMs(leastMs: number, models: number): number {
  return Math.max(leastMs, MS_FOR_MODEL * models)
}
