import { openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { CallRules } from '@tutti/graph'
import t from 'tap'
import { createCallRig, createStepRig } from '../testing/call-rig.ts'
import { chain, oneToOne, settle, toFloats } from '../testing/index.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')
const value = { datatype: 'FP32', shape: [2], value: [7, 8] } as const
const RULES: CallRules = { onError: { kind: 'default', outputs: [{ name: 'Y', value }] } }

await t.test('a step that has failed for good answers with its defaults', async (t) => {
  const rig = createStepRig({ ...RULES, timeoutMs: 300 })
  const { attempts, clock } = rig
  const failed = rig.ask()
  attempts[0]?.fail(BROKEN, 'maybe')
  const late = rig.ask()
  clock.advance(300)
  attempts[1]?.answer(1)
  const right = rig.ask()
  attempts[2]?.answer(3)
  const answers = [failed, late, right].map(({ responses: [one] }) => [
    one?.outputs[0]?.shape,
    [...toFloats(one?.outputs[0]?.data)],
  ])
  t.same(answers, [
    [[2], [7, 8]],
    [[2], [7, 8]],
    [[1], [3]],
  ])
  t.same(await rig.counts('tutti_step_defaults_total'), [2])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('what has answered gets none, however it ends', async (t) => {
  const rig = createStepRig(RULES)
  const asked = rig.ask()
  rig.attempts[0]?.answer(1, false)
  rig.attempts[0]?.fail(BROKEN, 'maybe')
  t.match(asked.responses, [{ error: { reason: 'ENGINE_FAILED' } }])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('it comes after all attempts, and without a replica too', async (t) => {
  const rig = createStepRig(RULES)
  rig.router.view.remove('a')
  rig.router.view.remove('b')
  const asked = rig.ask()
  rig.clock.advance(10)
  await settle()
  t.same(toFloats(asked.responses[0]?.outputs[0]?.data), [7, 8])
  t.equal(rig.attempts.length, 0)
  t.same(rig.left, [0, 0, 0, 0])
})

const batched = (text: string) => `max_batch_size: 4 ${text}`

await t.test('each row of a batch has them', async (t) => {
  const rig = createStepRig(RULES, {
    models: { m: batched(oneToOne) },
    ensembles: { e: batched(chain('m')) },
  })
  const asked = rig.ask(undefined, 'e', { rows: 3 })
  rig.attempts[0]?.fail(BROKEN, 'maybe')
  const [output] = asked.responses[0]?.outputs ?? []
  t.same(
    [output?.shape, toFloats(output?.data)],
    [
      [3, 2],
      [7, 8, 7, 8, 7, 8],
    ],
  )
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('a step for each item has them in place of all items', async (t) => {
  const manifest = {
    inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1, 1] }],
    outputs: [{ name: 'OUT', from: 'only.Y', datatype: 'FP32', shape: [-1] }],
    steps: [
      {
        name: 'only',
        modelRef: { name: 'm' },
        forEach: { items: { X: 'IN' }, maxItems: 8, gather: 'Concat' },
        onError: { default: { Y: { datatype: 'FP32', value: [7, 8] } } },
      },
    ],
  }
  const rig = createCallRig({ models: { m: batched(oneToOne) }, manifests: { e: manifest } })
  const asked = rig.ask(undefined, 'e', { rows: 3 })
  rig.attempts[0]?.fail(BROKEN, 'maybe')
  const [output] = asked.responses[0]?.outputs ?? []
  t.same([output?.shape, [...toFloats(output?.data)]], [[2], [7, 8]])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('a request that is cancelled, or overdue, gets none', async (t) => {
  for (const how of ['cancel', 'deadline'] as const) {
    const rig = createStepRig(RULES)
    const deadline = how === 'deadline' && { remainingMs: 50 }
    const scope = openCallScope({ clock: rig.clock, ...deadline })
    const asked = rig.ask(scope.context)
    if (how === 'cancel') scope.cancel(new ServeError('CANCELLED', 'gone'))
    else rig.clock.advance(49.5)
    rig.attempts[0]?.fail(BROKEN, 'maybe')
    t.ok(asked.responses[0]?.error)
    scope.close()
    t.same(rig.left, [0, 0, 0, 0])
  }
})
