import { seededRandom } from '../hostile.ts'

export type Random = ReturnType<typeof createRandom>

/** Choices that a seed repeats. */
export function createRandom(seed: number) {
  const random = seededRandom(seed)
  /** A whole number from 0 up to, not including, `limit`. */
  const pick = (limit: number): number => Math.floor(random() * limit)
  return {
    pick,
    chance: (share: number): boolean => random() < share,
    bytes: (count: number): Buffer => Buffer.from(Array.from({ length: count }, () => pick(256))),
    oneOf: <T>(items: readonly [T, ...T[]] | readonly T[]): T => {
      const item = items[pick(items.length)]
      if (item === undefined) throw new Error('bug: nothing to choose from')
      return item
    },
  }
}
