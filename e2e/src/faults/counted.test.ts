import t from 'tap'
import { checkCounts } from './counted.ts'

const right = (request: number) => ({ type: 'ended', request, outcome: { kind: 'right' } }) as const
const failed = (request: number) => {
  const error = { code: 'UNAVAILABLE', reason: 'STEP_LOST', message: 'lost', details: {} }
  return { type: 'ended', request, outcome: { kind: 'error', ...error } } as const
}

await t.test(
  'requests that were executed once, or failed before that, keep the promise',
  async (t) => {
    t.same(
      checkCounts(
        [right(1), failed(2), failed(3)],
        new Map([
          [1, 1],
          [2, 1],
        ]),
      ),
      [],
    )
  },
)

await t.test('a request that was executed twice is found, however it ended', async (t) => {
  t.same(checkCounts([right(1)], new Map([[1, 2]])), ['request 1 was executed 2 times'])
  t.same(checkCounts([failed(1)], new Map([[1, 3]])), ['request 1 was executed 3 times'])
})

await t.test('an answer to what was never executed is found', async (t) => {
  t.same(checkCounts([right(1)], new Map()), ['request 1 was answered, but never executed'])
})
