import { env } from 'node:process'

/**
 * The seed of a test's random inputs: TUTTI_SEED. The tests of a change always have the same one, so that luck decides nothing;
 * nightly and soak runs draw one, and print it.
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

/** How many times as much a test does that counts: 1 for a change, 10 nightly, as the runs of properties. */
export function testFactor(): number {
  return Number(env['TUTTI_TEST_FACTOR'] ?? 1)
}
