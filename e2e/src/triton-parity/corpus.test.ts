// needs: python
import { testFactor } from '@tutti/chassis/testing'
import t from 'tap'
import { ROOT } from '../serving.ts'
import { ACCEPTED, MOST_ACCEPTED } from './accepted.ts'
import type { Difference } from './compare.ts'
import { differencesFrom, readCorpus, readKnown, writeKnown } from './corpus.ts'
import { listByKind, writeReport } from './report.ts'
import { startTuttiServer } from './servers.ts'

t.setTimeout(600_000)

const FEWEST_CASES = 2000
/** `npm test` with it writes the list of known differences again, without those that are gone. */
const IS_WRITING = process.env['TUTTI_PARITY_WRITE'] === '1'

/** Each so many-th case that controls models, as each starts processes; all of them nightly. */
const SHARE = testFactor() > 1 || IS_WRITING ? 1 : 3

await t.test('what a real Triton 2.51 answered', async (t) => {
  t.ok(ACCEPTED.length <= MOST_ACCEPTED, `${ACCEPTED.length} accepted differences`)
  const corpus = readCorpus().filter(
    ({ test }, i) => !test.id.startsWith('control-') || i % SHARE === 0,
  )
  t.ok(corpus.length >= FEWEST_CASES, `${corpus.length} cases`)
  const server = await startTuttiServer(t)
  const found = new Map<string, readonly Difference[]>()
  for (const recorded of corpus) {
    const differences = differencesFrom(recorded, await server.run(recorded.test))
    if (differences.length > 0) found.set(recorded.test.id, differences)
  }
  if (IS_WRITING) writeKnown(found)
  const ran = new Set(corpus.map(({ test }) => test.id))
  const known = new Set(
    Object.values(readKnown())
      .flat()
      .filter((id) => ran.has(id)),
  )
  const findings = corpus.flatMap(({ test }) => {
    const differences = found.get(test.id)
    return differences === undefined ? [] : [{ test, differences }]
  })
  writeReport(`${ROOT}out/parity`, 'corpus', findings, { known: known.size })
  const fresh = findings.filter(({ test }) => !known.has(test.id))
  t.equal(listByKind(fresh), '', 'no case differs that is not known to')
  const gone = [...known].filter((id) => !found.has(id))
  t.same(
    gone,
    [],
    'each known difference is there; if not, run this test with TUTTI_PARITY_WRITE=1',
  )
})
