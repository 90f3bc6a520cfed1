// needs: nats
import t from 'tap'
import { SKIP } from './harness.ts'
import { showHistory } from './history-round.ts'

t.setTimeout(600_000)

await t.test('500 requests through faults of every kind, over TLS', { skip: SKIP }, (t) =>
  showHistory(t, 500, 'tls'),
)
