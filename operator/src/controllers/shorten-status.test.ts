import type { ModelStatus } from '@tutti/ensemble'
import t from 'tap'
import { shortenStatus } from './shorten-status.ts'

const time = '2026-01-01T00:00:00Z'
const condition = (type: string, message: string) => ({
  type,
  status: 'False' as const,
  reason: 'R',
  message,
  lastTransitionTime: time,
})

await t.test('the signature goes, messages are cut, and Degraded says so', async (t) => {
  const status: ModelStatus = {
    observedGeneration: 2,
    conditions: [condition('Ready', 'm'.repeat(30_000)), condition('Degraded', 'nothing is wrong')],
    signature: { maxBatchSize: 1, decoupled: false, inputs: [], outputs: [] },
    lastFailure: { reason: 'OOMKilled', message: 'm', time },
  }
  const { conditions = [], ...rest } = shortenStatus(status)
  t.same(rest, { observedGeneration: 2, lastFailure: { reason: 'OOMKilled', message: 'm', time } })
  const [ready, degraded] = conditions
  t.equal(ready?.message.length, 1024)
  t.match(degraded, { status: 'False', reason: 'R', lastTransitionTime: time })
  t.match(degraded?.message, /^nothing is wrong; status.signature is left out .* smaller spec$/)
  t.ok(status.signature, 'what was given is as it was')
})
