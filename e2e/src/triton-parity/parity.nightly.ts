// needs: triton, python
import { testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { ROOT } from '../serving.ts'
import { ACCEPTED, MOST_ACCEPTED } from './accepted.ts'
import { type Recorded, readKnown, writeCorpus } from './corpus.ts'
import { generateCases } from './generate/cases.ts'
import { listByKind, writeReport } from './report.ts'
import { startTriton } from './servers.ts'
import { runSideBySide } from './side-by-side.ts'

t.setTimeout(0)

const COUNT = Number(process.env['TUTTI_PARITY_CASES'] ?? 4000)
/** Some more than are wanted: those that end Triton are left out. */
const CORPUS_CASES = 2200
const CORPUS_SEED = 1_000_000_000
const SEED = testSeed()
const { TUTTI_TRITON: program, TUTTI_TRITON_MISSING: reason } = process.env
const skip = program === undefined ? (reason ?? 'TUTTI_TRITON is not set') : false

/** Writes the corpus of `npm test` again. */
const IS_RECORDING = process.env['TUTTI_PARITY_RECORD'] === '1'

await t.test('the corpus is recorded', { skip: !IS_RECORDING || skip }, async (t) => {
  const triton = await startTriton(t, program ?? '')
  const recorded: Recorded[] = []
  for (const test of generateCases(CORPUS_CASES, CORPUS_SEED)) {
    const answers = await triton.run(test)
    if (answers !== undefined) recorded.push({ test, answers })
  }
  writeCorpus(recorded)
  t.ok(recorded.length > 0, `${recorded.length} cases are in the corpus`)
})

await t.test(
  `${COUNT} cases answered by Triton and by Tutti, seed ${SEED}`,
  { skip: IS_RECORDING || skip },
  async (t) => {
    t.ok(ACCEPTED.length <= MOST_ACCEPTED, `${ACCEPTED.length} accepted differences`)
    const outcome = await runSideBySide(t, program ?? '', generateCases(COUNT, SEED))
    const { findings, ...summary } = outcome
    writeReport(`${ROOT}out/parity`, 'differences', findings, {
      seed: SEED,
      ...summary,
    })
    t.comment(`${JSON.stringify(summary)}\nThe report is in out/parity.`)
    t.ok(outcome.ran > outcome.lost.length, 'there was a Triton to compare with')
    const known = readKnown()
    const fresh = findings.filter(({ differences }) =>
      differences.every(({ kind }) => !Object.hasOwn(known, kind)),
    )
    t.equal(listByKind(fresh), '', 'nothing differs that is neither accepted nor known')
  },
)
