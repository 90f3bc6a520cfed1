import t from 'tap'
import type { Outcome } from './asking.ts'
import { checkHistory, type HistoryEvent } from './history-check.ts'

const RIGHT: Outcome = { kind: 'right' }
const invoked = (request: number, o: { router?: string; isTimed?: boolean } = {}) =>
  ({ type: 'invoked', request, router: 'a', isTimed: false, ...o }) as const
const ended = (request: number, outcome: Outcome = RIGHT) =>
  ({ type: 'ended', request, outcome }) as const
const cancelled = (request: number) => ({ type: 'cancelled', request }) as const
const struck = (fault: number, o: Partial<Extract<HistoryEvent, { type: 'struck' }>> = {}) =>
  ({ type: 'struck', fault, kind: 'step killed', ...o }) as const
const settled = (fault: number) => ({ type: 'settled', fault }) as const
const failed = (code: string, reason: string): Outcome => ({
  kind: 'error',
  code,
  reason,
  message: 'said so',
  details: {},
})
const LOST = failed('UNAVAILABLE', 'STEP_LOST')

await t.test('a history that keeps every promise has no problem', async (t) => {
  t.same(
    checkHistory([
      invoked(1),
      invoked(2),
      struck(1),
      ended(2),
      invoked(3, { isTimed: true }),
      invoked(4),
      cancelled(4),
      ended(4, failed('CANCELLED', 'CANCELLED')),
      ended(1, LOST),
      settled(1),
      ended(3, failed('DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED')),
      invoked(5),
      ended(5),
      { ...invoked(6), dueMs: 1000 },
      { ...ended(6), atMs: 1000 },
    ]),
    [],
  )
})

const BROKEN: readonly (readonly [string, readonly HistoryEvent[], RegExp])[] = [
  ['a lost answer', [invoked(1), invoked(2), ended(2)], /^request 1 has no outcome$/],
  ['two answers', [invoked(1), ended(1), ended(1)], /^request 1 has another outcome/],
  [
    'an error after the answer',
    [invoked(1), struck(1), ended(1), ended(1, LOST), settled(1)],
    /STEP/,
  ],
  ['an answer to a request that has ended', [ended(7)], /^request 7 was ended before/],
  ['a number twice', [invoked(1), ended(1), invoked(1)], /invoked twice/],
  ['wrong bytes', [invoked(1), ended(1, { kind: 'wrong', what: '3 bytes' })], /wrongly: 3 bytes/],
  ['an error without a reason', [invoked(1), ended(1, LOST)], /^request 1 failed with .*STEP_LOST/],
  ['an error after the fault', [struck(1), settled(1), invoked(1), ended(1, LOST)], /STEP_LOST/],
  ['an error before the fault', [invoked(1), ended(1, LOST), struck(1), settled(1)], /STEP_LOST/],
  [
    'an error of another kind of fault',
    [struck(1), invoked(1), ended(1, failed('UNAVAILABLE', 'SERVER_NOT_READY')), settled(1)],
    /SERVER_NOT_READY/,
  ],
  [
    'an error for clients of another router',
    [struck(1, { kind: 'router cut off', router: 'b' }), invoked(1), ended(1, LOST), settled(1)],
    /STEP_LOST/,
  ],
  [
    'an untyped error',
    [struck(1), invoked(1), ended(1, failed('INTERNAL', 'INTERNAL')), settled(1)],
    /INTERNAL/,
  ],
  [
    'a right reason with a wrong code',
    [struck(1), invoked(1), ended(1, failed('INTERNAL', 'STEP_LOST')), settled(1)],
    /INTERNAL STEP_LOST/,
  ],
  [
    'a rolling update that somebody notices',
    [struck(1, { kind: 'step replaced' }), invoked(1), ended(1, LOST), settled(1)],
    /STEP_LOST/,
  ],
  ['an answer after the cancel', [invoked(1), cancelled(1), ended(1)], /after it was cancelled/],
  [
    'a cancel that the client did not send',
    [invoked(1), ended(1, failed('CANCELLED', 'CANCELLED'))],
    /CANCELLED/,
  ],
  [
    'a time that runs out without a deadline',
    [struck(1), invoked(1), ended(1, failed('DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED')), settled(1)],
    /DEADLINE_EXCEEDED/,
  ],
  [
    'an answer that is late',
    [
      { ...invoked(1), dueMs: 10 },
      { ...ended(1), atMs: 12 },
    ],
    /2 ms too/,
  ],
  [
    'an error of a fault that nobody knows',
    [struck(1, { kind: 'flood' }), invoked(1), ended(1, LOST), settled(1)],
    /STEP_LOST/,
  ],
  ['a fault that never settles', [struck(3)], /^fault 3 has not settled$/],
  ['a fault that never struck', [settled(3)], /^fault 3 settled without/],
]

for (const [what, events, problem] of BROKEN) {
  await t.test(`${what} is found, and nothing else`, async (t) => {
    const problems = checkHistory(events)
    t.equal(problems.length, 1, problems.join('; '))
    t.match(problems[0], problem)
  })
}

await t.test('a fault explains the errors that its table names', async (t) => {
  const events = [struck(1, { kind: 'flood' }), invoked(1), ended(1, LOST), settled(1)]
  t.same(checkHistory(events, { flood: ['UNAVAILABLE STEP_LOST'] }), [])
})
