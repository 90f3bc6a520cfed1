// needs: nats
import t from 'tap'
import { SKIP } from './harness.ts'
import { showHistory } from './history-round.ts'

t.setTimeout(600_000)

await t.test('3,000 requests through faults of every kind', { skip: SKIP }, (t) =>
  showHistory(t, 3000),
)
