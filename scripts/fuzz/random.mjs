/**
 * Random numbers that one seed repeats (mulberry32).
 *
 * @param {number} seed
 */
export function seededRandom(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  const below = (bound) => next() % bound
  return { below, pick: (list) => list[below(list.length)] }
}
