import { env } from 'node:process'
import * as real from 'fast-check'

const factor = readNumber('TUTTI_TEST_FACTOR')
const seed = readNumber('TUTTI_SEED')
/** Runs that fast-check has for a test that says nothing. */
const DEFAULT_RUNS = 100

real.configureGlobal({ ...real.readConfigureGlobal(), seed })

// oxlint-disable-next-line import/export -- `assert` below takes the place of the one among these
export * from 'fast-check'

/** As fast-check's, with more runs. */
export function assert(property, options = {}) {
  const { numRuns = DEFAULT_RUNS } = options
  return real.assert(property, { ...options, numRuns: numRuns * factor })
}

// oxlint-disable-next-line import/no-default-export -- fast-check has one
export default { ...real, assert }

/** A number that is none would give a property no runs, or a seed that is not the printed one. */
function readNumber(name) {
  const text = env[name] ?? '1'
  if (/^\d+$/.test(text) && Number(text) < 2 ** 31) return Number(text)
  throw new Error(`${name}=${text}, want an integer from 0 to 2147483647`)
}
