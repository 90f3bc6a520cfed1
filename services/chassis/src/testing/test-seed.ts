import { env } from 'node:process'

/**
 * Reads the seed of a test's random inputs from TUTTI_SEED; 1 if it is unset. Tests of a change always use the same seed, so that
 * luck decides nothing. Nightly and soak runs draw a seed and print it.
 *
 * @returns an integer from 0 to 2^31 - 1.
 * @throws Error if TUTTI_SEED is something else.
 */
export function testSeed(): number {
  const text = env['TUTTI_SEED'] ?? '1'
  const seed = Number(text)
  if (/^\d+$/.test(text) && seed < 2 ** 31) return seed
  throw new Error(`TUTTI_SEED=${text}, want an integer from 0 to 2147483647`)
}

/** Reads the factor by which tests repeat counted work, such as the runs of properties: 1 for a change, 10 nightly. */
export function testFactor(): number {
  return Number(env['TUTTI_TEST_FACTOR'] ?? 1)
}
