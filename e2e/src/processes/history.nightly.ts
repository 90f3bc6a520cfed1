// needs: nats
import t from 'tap'
import { SKIP } from './harness.ts'
import { showHistory } from './history-round.ts'

t.setTimeout(0)

await t.test('10,000 requests through faults of every kind', { skip: SKIP }, (t) =>
  showHistory(t, 10_000),
)
