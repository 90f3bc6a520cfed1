import type { Condition } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { findCondition, setCondition, toConditions, toTime } from './conditions.ts'

const T1 = '2026-01-01T00:00:00Z'
const T2 = '2026-01-02T00:00:00Z'
const ready = {
  type: 'Ready',
  status: 'False',
  reason: 'Loading',
  message: 'm',
  observedGeneration: 1,
} as const

await t.test('the time of a transition moves only with the status', async (t) => {
  const first = setCondition([], ready, T1)
  t.equal(first[0]?.lastTransitionTime, T1)
  t.equal(setCondition(first, ready, T2), first, 'the very same list')
  const reworded = setCondition(first, { ...ready, message: 'n', observedGeneration: 2 }, T2)
  t.match(reworded[0], { lastTransitionTime: T1, message: 'n', observedGeneration: 2 })
  const turned = setCondition(reworded, { ...ready, status: 'True' }, T2)
  t.match(turned[0], { lastTransitionTime: T2, status: 'True' })
})

await t.test('a message that is too long is cut, and stays cut', async (t) => {
  const long = { ...ready, message: `x${'🎵'.repeat(20_000)}` }
  const conditions = setCondition([], long, T1)
  const { message } = conditions[0] ?? { message: '' }
  t.ok(message.length <= 32_768)
  t.ok(message.isWellFormed())
  t.ok(message.endsWith('…'))
  t.equal(setCondition(conditions, long, T2), conditions)
})

await t.test('a status has its own conditions, and leaves those of others to them', async (t) => {
  const theirs = { ...ready, type: 'Theirs', lastTransitionTime: T1 }
  const judged = { Paused: { ...ready, status: 'True' }, Ready: ready } as const
  const before = [theirs, { ...ready, lastTransitionTime: T1 }]
  const o = { judged, before, observedGeneration: 2, at: T2 }
  t.same(toConditions(['Paused', 'Ready'], o), [
    { ...judged.Paused, type: 'Paused', observedGeneration: 2, lastTransitionTime: T2 },
    { ...ready, observedGeneration: 2, lastTransitionTime: T1 },
  ])
})

await t.test('conditions are found by their type', async (t) => {
  const conditions = setCondition(setCondition([], ready, T1), { ...ready, type: 'Paused' }, T1)
  t.equal(findCondition(conditions, 'Paused')?.reason, 'Loading')
  t.equal(findCondition(undefined, 'Paused'), undefined)
  t.equal(toTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678)), '2026-01-02T03:04:05Z')
})

await t.test(
  'in any order of judgements there is one condition a type, in the order in which they came',
  async (t) => {
    const input = fc.record({
      type: fc.constantFrom('A', 'B', 'C'),
      status: fc.constantFrom<Condition['status']>('True', 'False', 'Unknown'),
      reason: fc.constantFrom('R', 'S'),
      message: fc.constantFrom('m', 'n'),
      observedGeneration: fc.nat(3),
    })
    fc.assert(
      fc.property(fc.array(input), (inputs) => {
        let conditions: readonly Condition[] = []
        inputs.forEach((one, at) => {
          const before = findCondition(conditions, one.type)
          conditions = setCondition(conditions, one, toTime(at * 1000))
          const now = findCondition(conditions, one.type)
          const isKept = now?.lastTransitionTime === before?.lastTransitionTime
          if (isKept !== (before?.status === one.status)) throw new Error('time of transition')
        })
        const types = [...new Set(inputs.map(({ type }) => type))]
        return types.join() === conditions.map(({ type }) => type).join()
      }),
    )
    t.pass()
  },
)
