import { testSeed } from '@tutti/chassis/testing'
import { ACCEPTED_REASONS } from '@tutti/graph'
import t from 'tap'
import { compareResults } from '../testing/validation/compare-results.ts'

/** Namespaces of each kind, with three or four resources each. */
const NAMESPACES = 600
/** A failure names the seed of its namespace. */
const firstSeed = testSeed()

await t.test('tutti validate says what the operator will say', async (t) => {
  const seen = new Set<string>()
  for (const hasRepository of [false, true]) {
    const o = { firstSeed, count: NAMESPACES, hasRepository }
    for (const reason of await compareResults(t, o)) seen.add(reason)
  }
  // Nothing is drawn that breaks the schema.
  const wanted = Object.keys(ACCEPTED_REASONS).filter((reason) => reason !== 'InvalidSpec')
  t.same(
    wanted.filter((reason) => !seen.has(reason)),
    [],
    'with every reason',
  )
})
