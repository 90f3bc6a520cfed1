// needs: nats
import { testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { SKIP } from '../processes/harness.ts'
import { formatCounts, runHistory } from '../processes/history-round.ts'

t.setTimeout(0)

/** Hours, unless one wants it shorter. */
const MINUTES = Number(process.env['TUTTI_SOAK_MINUTES'] ?? 240)
const SEED = testSeed()
const REQUESTS = 10_000

await t.test('histories of one seed after the other', { skip: SKIP }, async (all) => {
  const endsAt = performance.now() + MINUTES * 60_000
  const totals = { outcomes: new Map<string, number>(), faults: new Map<string, number>() }
  for (let round = 0; round === 0 || performance.now() < endsAt; round += 1) {
    await all.test(`seed ${SEED + round}`, async (test) => {
      const { outcomes, faults } = await runHistory(test, {
        seed: SEED + round,
        requests: REQUESTS,
      })
      add(totals.outcomes, outcomes)
      add(totals.faults, faults)
    })
    all.comment(`after ${round + 1} rounds: ${formatCounts(totals.outcomes)}`)
    all.comment(formatCounts(totals.faults))
  }
})

function add(totals: Map<string, number>, counts: ReadonlyMap<string, number>): void {
  for (const [what, count] of counts) totals.set(what, (totals.get(what) ?? 0) + count)
}
