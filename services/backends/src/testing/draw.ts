import { testFactor, testSeed } from '@tutti/chassis/testing'
import * as fc from 'fast-check'

/** Draws random cases, the same ones in each run of `npm test`. */
export function draw<T>(cases: fc.Arbitrary<T>, count: number): readonly T[] {
  return fc.sample(cases, { seed: testSeed(), numRuns: count * testFactor() })
}

/** The name that NumPy has for a datatype. */
export function numpyName(datatype: string): string {
  return datatype.toLowerCase().replace(/^fp/, 'float')
}
