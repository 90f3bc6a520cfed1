import { testFactor, testSeed } from '@tutti/chassis/testing'
import type { Datatype, NamedTensor, Shape } from '@tutti/tensor'
import { randomNumbers, randomTensor } from './random-tensors.ts'

/** Draws what a random test needs; the same in each run of `npm test`. */
export interface Dice {
  /** A whole number from `least` to `most`. */
  int(least: number, most: number): number
  float(least: number, most: number): number
  pick<T>(...values: readonly T[]): T
  isTrue(): boolean
  /** Extents from 1 up, or from 0. */
  shape(leastRank: number, mostRank: number, leastExtent?: number): number[]
  /** One dimension of so many, counted from the first or from the last. */
  axis(rank: number): number
  tensor(
    name: string,
    datatype: Datatype,
    shape: Shape,
    bounds?: { readonly least: number; readonly most: number },
  ): NamedTensor
}

export function createDice(seed = testSeed()): Dice {
  const random = randomNumbers(seed)
  const int = (least: number, most: number): number =>
    least + Math.floor(random() * (most - least + 1))
  return {
    int,
    float: (least, most) => least + random() * (most - least),
    // The place is always one of the list, whose values may be undefined.
    pick: <T>(...values: readonly T[]) => values[int(0, values.length - 1)] as T,
    isTrue: () => random() < 0.5,
    shape: (leastRank, mostRank, leastExtent = 1) =>
      Array.from({ length: int(leastRank, mostRank) }, () => int(leastExtent, 6)),
    axis: (rank) => int(-rank, rank - 1),
    tensor: (name, datatype, shape, bounds) => {
      return randomTensor(random, { name, datatype, shape, ...bounds })
    },
  }
}

/** The number of random cases of a test. */
export const times = (count: number): number[] => {
  return Array.from({ length: count * testFactor() }, (_, i) => i)
}

/** The name that NumPy has for a datatype. */
export function numpyName(datatype: string): string {
  return datatype.toLowerCase().replace(/^fp/, 'float')
}

/** A value as Python writes it. */
export function python(value: unknown): string {
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (value === undefined || value === null) return 'None'
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  return JSON.stringify(value)
}
