import { ServeError } from '@tutti/errors'
import t from 'tap'
import { retryDelayMs } from './retry-policy.ts'

const UNAVAILABLE = new ServeError('STEP_UNAVAILABLE', 'no replica')
const failed = { error: UNAVAILABLE, executed: 'no', hasResponded: false, tries: 1 } as const

await t.test('what cannot have run is tried three times', async (t) => {
  t.same(
    [1, 2, 3].map((tries) => retryDelayMs({ ...failed, tries })),
    [0, 10, undefined],
    'at once, after 10 ms, and no more',
  )
})

await t.test('what may have run, or would fail again, is not', async (t) => {
  const table = [
    { executed: 'maybe' },
    { hasResponded: true },
    { error: new ServeError('QUEUE_FULL', 'Exceeds maximum queue size') },
    { error: new ServeError('INVALID_REQUEST', 'no such input') },
  ] as const
  for (const row of table) t.equal(retryDelayMs({ ...failed, ...row }), undefined)
})
