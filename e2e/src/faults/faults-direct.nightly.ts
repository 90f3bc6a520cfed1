// needs: nats, python, netns, faketime
import t from 'tap'
import { SKIP } from '../processes/harness.ts'
import { inOwnNamespaces } from './own-namespaces.ts'
import { showFaults, writeReports } from './show-faults.ts'

t.setTimeout(0)

await inOwnNamespaces(
  t,
  import.meta.url,
  () =>
    t.test('every fault', { skip: SKIP }, async (t) => {
      await writeReports(await showFaults(t, { isQuick: false }))
    }),
  [{ TUTTI_DIRECT: 'tls' }, { TUTTI_DIRECT: 'unix' }],
)
