import type { Condition } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { findCondition, toConditions, toTime } from './conditions.ts'

const T1 = '2026-01-01T00:00:00Z'
const T2 = '2026-01-02T00:00:00Z'
const ready = { status: 'False', reason: 'Loading', message: 'm' } as const
type State = Pick<Condition, 'status' | 'reason' | 'message'>

/** Conditions of the one type `Ready`. */
function next(
  before: readonly Condition[],
  state: State,
  { at = T1, observedGeneration = 1 }: { at?: string; observedGeneration?: number } = {},
): readonly Condition[] {
  return toConditions(['Ready'], { states: { Ready: state }, before, observedGeneration, at })
}

await t.test('the time of a transition moves only with the status', async (t) => {
  const first = next([], ready)
  t.equal(first[0]?.lastTransitionTime, T1)
  t.same(next(first, ready, { at: T2 }), first)
  const reworded = next(first, { ...ready, message: 'n' }, { at: T2, observedGeneration: 2 })
  t.match(reworded[0], { lastTransitionTime: T1, message: 'n', observedGeneration: 2 })
  const turned = next(reworded, { ...ready, status: 'True' }, { at: T2 })
  t.match(turned[0], { lastTransitionTime: T2, status: 'True' })
})

await t.test('a message that is too long is cut, and stays cut', async (t) => {
  const long = { ...ready, message: `x${'🎵'.repeat(20_000)}` }
  const conditions = next([], long)
  const { message } = conditions[0] ?? { message: '' }
  t.ok(message.length <= 32_768)
  t.ok(message.isWellFormed())
  t.ok(message.endsWith('…'))
  t.same(next(conditions, long, { at: T2 }), conditions)
})

await t.test('a status has its own conditions, and leaves those of others to them', async (t) => {
  const before = ['Theirs', 'Ready'].map((type) => ({ ...ready, type, lastTransitionTime: T1 }))
  const states = { Paused: { ...ready, status: 'True' }, Ready: ready } as const
  const o = { states, before, observedGeneration: 2, at: T2 }
  t.same(toConditions(['Paused', 'Ready'], o), [
    { ...states.Paused, type: 'Paused', observedGeneration: 2, lastTransitionTime: T2 },
    { ...ready, type: 'Ready', observedGeneration: 2, lastTransitionTime: T1 },
  ])
})

await t.test('conditions are found by their type', async (t) => {
  t.equal(findCondition(next([], ready), 'Ready')?.reason, 'Loading')
  t.equal(findCondition(undefined, 'Paused'), undefined)
  t.equal(toTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678)), '2026-01-02T03:04:05Z')
})

await t.test('in any order of states the time is that of the last transition', async (t) => {
  const input = fc.record({
    status: fc.constantFrom<Condition['status']>('True', 'False', 'Unknown'),
    reason: fc.constantFrom('R', 'S'),
    message: fc.constantFrom('m', 'n'),
  })
  fc.assert(
    fc.property(fc.array(input), (inputs) => {
      let conditions: readonly Condition[] = []
      return inputs.every((state, at) => {
        const [before] = conditions
        conditions = next(conditions, state, { at: toTime(at * 1000) })
        const isKept = conditions[0]?.lastTransitionTime === before?.lastTransitionTime
        return conditions.length === 1 && isKept === (before?.status === state.status)
      })
    }),
  )
  t.pass()
})
