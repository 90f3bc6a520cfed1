// needs: nats
import t from 'tap'
import { SKIP } from './harness.ts'
import { formatCounts, runHistory } from './history-round.ts'

t.setTimeout(600_000)

const REQUESTS = 10_000
const SEED = Number(process.env['TUTTI_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

await t.test('10,000 requests through faults of every kind', { skip: SKIP }, async (t) => {
  const { calm, outcomes, faults } = await runHistory(t, { seed: SEED, requests: REQUESTS })
  t.comment(`${formatCounts(outcomes)}; ${calm} of them between the faults`)
  t.comment(formatCounts(faults))
  t.ok(calm > REQUESTS / 20, `${calm} requests had no fault for an excuse`)
  t.ok((outcomes.get('right') ?? 0) > REQUESTS / 2, 'most of them are answered')
})
