/** Wait for each model: a reading takes a server about 0.06 ms for each of its models, and a page may cost it 1 % of a core. */
const MS_FOR_MODEL = 10

/**
 * Computes the milliseconds until a page asks again. They grow with the number of models, since each answer reads the whole
 * index.
 *
 * @param leastMs - the result for few models.
 */
export function nextMs(leastMs: number, models: number): number {
  return Math.max(leastMs, MS_FOR_MODEL * models)
}
