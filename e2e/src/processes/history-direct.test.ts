// needs: nats
import t from 'tap'
import { SKIP } from './harness.ts'
import { showHistory } from './history-round.ts'

t.setTimeout(600_000)

/** A member that goes, one that comes, and the broker without which connections have to last; all of them nightly. */
const FAULTS = ['step killed', 'router held', 'broker restarted'] as const

await t.test('300 requests through faults, over TLS', { skip: SKIP }, (t) =>
  showHistory(t, 300, { direct: 'tls', faults: FAULTS }),
)
