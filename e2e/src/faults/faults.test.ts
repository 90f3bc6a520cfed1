// needs: nats, python, netns
import t from 'tap'
import { SKIP } from '../processes/harness.ts'
import { inOwnNamespaces } from './own-namespaces.ts'
import { showFaults } from './show-faults.ts'

t.setTimeout(600_000)

await inOwnNamespaces(t, import.meta.url, () =>
  t.test('the quicker faults', { skip: SKIP }, (t) => showFaults(t, { isQuick: true })),
)
