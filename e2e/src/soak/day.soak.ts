// needs: nats, python, apiserver
import { testSeed } from '@tutti/chassis/testing'
import { withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { seededRandom } from '../hostile.ts'
import { SKIP } from '../processes/harness.ts'
import { PYTHON } from '../triton-client.ts'
import { startOneProcess } from './one-process-way.ts'
import { startOperatorWay } from './operator-way.ts'
import { startOverNats } from './over-nats-way.ts'
import { addUp, openReport, type SoakReport } from './soak-report.ts'
import type { Done, Way } from './way.ts'

t.setTimeout(0)

/** A day, unless one wants it shorter: pieces add up in one report. */
const MINUTES = Number(process.env['TUTTI_SOAK_MINUTES'] ?? 24 * 60)
const SEED = testSeed()
const WITHOUT = [
  PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set',
  SKIP,
  withoutKube('kube-controller-manager', 'kube-scheduler', 'helm'),
]
const skip = WITHOUT.find((reason) => reason !== false) ?? false

await t.test('everything, round after round, and nothing grows', { skip }, async (all) => {
  const report = openReport('day', SEED)
  all.comment(`TUTTI_SEED=${SEED}, report: ${report.path}`)
  const ways = new Map<string, Way>()
  ways.set('one process', await startOneProcess(all))
  ways.set('over NATS', await startOverNats(all))
  ways.set('operator', await startOperatorWay(all))
  const startedMs = performance.now()
  const hasTime = (): boolean => performance.now() - startedMs < MINUTES * 60_000
  let trends: ReturnType<SoakReport['add']> = {}
  let isWhole = true
  for (let round = 1; isWhole && (round === 1 || hasTime()); round += 1) {
    // A round that throws leaves processes as no round may find them.
    isWhole = false
    await all.test(`round ${round}`, async (test) => {
      const done = await runAll(test, ways, SEED + round)
      const held = addUp(await Promise.all([...ways.values()].map((way) => way.held())))
      const atS = Math.round((performance.now() - startedMs) / 1000)
      trends = report.add({ round, atS, held, ...done })
      test.same(done.problems.slice(0, 20), [])
      isWhole = true
    })
  }
  for (const [name, { perRound, bound, verdict, first, last }] of Object.entries(trends)) {
    const grown = `${name} from ${first} to ${last}: ${perRound.toPrecision(3)} a round`
    all.not(verdict, 'growing', `${grown}, ${verdict}, at most ${bound}`)
  }
})

/** All ways at once, since each waits for this and that. */
async function runAll(test: Test, ways: ReadonlyMap<string, Way>, seed: number): Promise<Done> {
  const all = await Promise.all(
    [...ways].map(async ([name, way]) => {
      const startedMs = performance.now()
      const { done, problems } = await way.round(test, { random: seededRandom(seed), seed })
      const all = { ...done, seconds: Math.round((performance.now() - startedMs) / 1000) }
      return {
        done: Object.fromEntries(Object.entries(all).map(([what, n]) => [`${name}, ${what}`, n])),
        problems: problems.map((problem) => `${name}: ${problem}`),
      }
    }),
  )
  return { done: addUp(all.map(({ done }) => done)), problems: all.flatMap((one) => one.problems) }
}
