import { env } from 'node:process'
import * as real from 'fast-check'

const factor = Number(env.TUTTI_TEST_FACTOR ?? 1)
/** Of fast-check, for a test that says nothing. */
const DEFAULT_RUNS = 100

real.configureGlobal({ ...real.readConfigureGlobal(), seed: Number(env.TUTTI_SEED ?? 1) })

// oxlint-disable-next-line import/export -- `assert` below takes the place of the one among these
export * from 'fast-check'

/** As fast-check's, with more runs. */
export function assert(property, options = {}) {
  const { numRuns = DEFAULT_RUNS } = options
  return real.assert(property, { ...options, numRuns: numRuns * factor })
}

// oxlint-disable-next-line import/no-default-export -- fast-check has one
export default { ...real, assert }
