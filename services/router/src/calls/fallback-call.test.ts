import { openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { CallRules } from '@tutti/graph'
import type { RecordedResponses } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  type CallAttempt,
  type CallRigOptions,
  createCallRig,
  createStepRig,
} from '../testing/call-rig.ts'
import { chain, oneToOne, settle, toFloats } from '../testing/index.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')
const UNAVAILABLE = new ServeError('STEP_UNAVAILABLE', 'gone')
const TO_N: CallRules = { onError: { kind: 'fallback', model: 'n', version: -1 } }
const FALLBACKS = 'tutti_step_fallbacks_total'

/** A step that runs `m`, and falls back to `n`. */
function rigOf(rules: CallRules = {}, o: CallRigOptions = {}) {
  return createStepRig({ ...TO_N, ...rules }, { models: { m: oneToOne, n: oneToOne }, ...o })
}

/** Lists what a request was answered with: numbers, reasons. */
function seen({ responses }: RecordedResponses): readonly (number | string | undefined)[] {
  return responses.map(({ outputs, error }) => error?.reason ?? toFloats(outputs[0]?.data)[0])
}

function models(attempts: readonly CallAttempt[]): readonly string[] {
  return attempts.map(({ model, number }) => `${model}${number}`)
}

await t.test('what answers needs no fallback', async (t) => {
  const rig = rigOf()
  const asked = rig.ask()
  rig.attempts[0]?.answer(1)
  t.same([seen(asked), models(rig.attempts)], [[1], ['m1']])
  t.same(await rig.counts(FALLBACKS), [0])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('what has answered gets no fallback, however it ends', async (t) => {
  const rig = rigOf({ timeoutMs: 300 })
  const asked = rig.ask()
  rig.attempts[0]?.answer(1, false)
  rig.clock.advance(300)
  t.same([seen(asked), models(rig.attempts)], [['STEP_TIMEOUT'], ['m1']])
  rig.attempts[0]?.fail(BROKEN, 'maybe')
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('after a failure of any kind the fallback gets the same request', async (t) => {
  for (const error of [BROKEN, new ServeError('INVALID_REQUEST', 'no such shape')]) {
    const rig = rigOf()
    const asked = rig.ask()
    rig.attempts[0]?.fail(error, 'maybe')
    t.same(models(rig.attempts), ['m1', 'n2'])
    t.same(toFloats(rig.attempts[1]?.inputs[0]?.data)[0], 1)
    rig.attempts[1]?.answer(2)
    rig.attempts[0]?.answer(1)
    t.same(seen(asked), [2])
    t.same(await rig.counts(FALLBACKS), [1])
    const [statistics] = await rig.router.statistics('e', '')
    t.same([statistics?.success.count, statistics?.fail.count], [1n, 0n])
    t.same(rig.left, [0, 0, 0, 0])
  }
})

await t.test('it comes after all attempts, and after the timeout', async (t) => {
  const refused = rigOf()
  const asked = refused.ask()
  for (let i = 0; i < 3; i += 1) {
    refused.attempts[i]?.fail(UNAVAILABLE, 'no')
    refused.clock.advance(10)
    await settle()
  }
  t.same(models(refused.attempts), ['m1', 'm2', 'm3', 'n4'])
  refused.attempts[3]?.answer(4)
  t.same(seen(asked), [4])
  t.same(refused.left, [0, 0, 0, 0])
  const hangs = rigOf({ timeoutMs: 300 })
  const late = hangs.ask()
  hangs.clock.advance(300)
  t.same(models(hangs.attempts), ['m1', 'n2'])
  t.equal(hangs.attempts[0]?.isCancelled, true)
  hangs.attempts[0]?.answer(1)
  hangs.clock.advance(1000)
  hangs.attempts[1]?.answer(2)
  t.same(seen(late), [2], 'the timeout is not that of the fallback')
  t.same(hangs.left, [0, 0, 0, 0])
})

await t.test('if both fail, the error is that of the fallback, with the first one', async (t) => {
  const rig = rigOf()
  const asked = rig.ask()
  rig.attempts[0]?.fail(BROKEN, 'maybe')
  rig.attempts[1]?.fail(new ServeError('ENGINE_FAILED', 'it broke too'), 'maybe')
  t.match(asked.responses, [
    {
      error: {
        message: "in ensemble 'e', it broke too",
        details: { step: 'only', model: 'n', firstError: 'ENGINE_FAILED: it broke' },
      },
    },
  ])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('a fallback has a timeout of its own', async (t) => {
  const onError = { kind: 'fallback', model: 'n', version: -1, timeoutMs: 50 } as const
  const rig = rigOf({ timeoutMs: 300, onError })
  const asked = rig.ask()
  rig.clock.advance(350)
  const message =
    "in ensemble 'e', the fallback of step 'only': no answer within its timeout of 50 ms"
  t.match(asked.responses, [
    { error: { message, details: { firstError: /^STEP_TIMEOUT: step 'only': no answer/ } } },
  ])
  t.same(
    rig.attempts.map(({ isCancelled }) => isCancelled),
    [true, true],
  )
  for (const attempt of rig.attempts) attempt.answer(1)
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('a request that is cancelled, or overdue, gets none', async (t) => {
  for (const how of ['cancel', 'deadline'] as const) {
    const rig = rigOf()
    const scope = openCallScope({
      clock: rig.clock,
      ...(how === 'deadline' && { remainingMs: 50 }),
    })
    const asked = rig.ask(scope.context)
    if (how === 'cancel') scope.cancel(new ServeError('CANCELLED', 'gone'))
    else rig.clock.advance(49.5)
    rig.attempts[0]?.fail(BROKEN, 'maybe')
    t.equal(rig.attempts.length, 1)
    t.equal(seen(asked).length, 1)
    scope.close()
    t.same(rig.left, [0, 0, 0, 0])
  }
})

await t.test('an Ensemble may be a fallback', async (t) => {
  const onError = { kind: 'fallback', model: 'other', version: -1 } as const
  const other = chain('n').replaceAll('"IN"', '"X"').replaceAll('"OUT"', '"Y"')
  const rig = rigOf({ onError }, { ensembles: { e: chain('m'), other } })
  const asked = rig.ask()
  rig.attempts[0]?.fail(BROKEN, 'maybe')
  t.same(models(rig.attempts), ['m1', 'n1'])
  rig.attempts[1]?.answer(2)
  t.same(seen(asked), [2])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test(
  'an ensemble goes on whose model has no replica left, if its fallback has',
  async (t) => {
    const rig = rigOf()
    const { router, clock, attempts } = rig
    const serve = (replica: string, names: readonly string[]) => {
      const known = rig.described(names)
      router.view.describe({ replica, models: known }, { statistics: async () => [] })
    }
    serve('a', ['n'])
    serve('b', ['n'])
    t.ok(await router.isModelReady('e', ''))
    const asked = rig.ask()
    clock.advance(10)
    await settle()
    t.same(models(attempts), ['n4'], 'after three attempts to find a replica')
    attempts[0]?.answer(1)
    t.same(seen(asked), [1])
    t.same(rig.left, [0, 0, 0, 0])
    serve('a', ['m'])
    serve('b', ['m'])
    t.ok(await router.isModelReady('e', ''), 'nor does it need the fallback')
    const plain = rig.ask()
    attempts[1]?.answer(2)
    t.same(seen(plain), [2])
    const both = rig.ask()
    attempts[2]?.fail(BROKEN, 'maybe')
    clock.advance(10)
    await settle()
    t.match(both.responses, [
      { error: { reason: 'STEP_UNAVAILABLE', details: { model: 'n', firstError: /it broke/ } } },
    ])
    router.view.remove('a')
    router.view.remove('b')
    t.notOk(await router.isModelReady('e', ''), 'but one of them')
    t.same(rig.left, [0, 0, 0, 0])
  },
)

const MAPPED = {
  inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1, 1] }],
  outputs: [{ name: 'OUT', from: 'only.Y', datatype: 'FP32', shape: [-1, -1] }],
  steps: [
    {
      name: 'only',
      modelRef: { name: 'm' },
      forEach: { items: { X: 'IN' }, maxItems: 8 },
      timeout: '300ms',
      onError: { fallback: { modelRef: { name: 'n' } } },
    },
  ],
}

await t.test('a step for each item falls back with all its items', async (t) => {
  const models = { m: `max_batch_size: 2 ${oneToOne}`, n: oneToOne }
  const rig = createCallRig({ models, manifests: { e: MAPPED } })
  const { attempts, clock } = rig
  const calls = () => attempts.map(({ model, inputs }) => `${model} ${inputs[0]?.shape.join()}`)
  const answered = rig.ask(undefined, 'e', { rows: 3 })
  t.same(calls(), ['m 2,1', 'm 1,1'], 'items in batches')
  attempts[0]?.answer(1, true, [2, 1])
  attempts[1]?.fail(BROKEN, 'maybe')
  t.same(calls().slice(2), ['n 1', 'n 1', 'n 1'], 'all items, and one by one for a model without')
  for (const [i, attempt] of attempts.slice(2).entries()) attempt.answer(10 + i)
  t.match(answered.responses, [{ outputs: [{ name: 'OUT', shape: [3, 1] }] }])
  t.same(toFloats(answered.responses[0]?.outputs[0]?.data), [10, 11, 12])
  t.same(await rig.counts(FALLBACKS), [1])

  const failed = rig.ask(undefined, 'e', { rows: 3 })
  clock.advance(300)
  t.equal(attempts[5]?.isCancelled, true)
  attempts[8]?.fail(BROKEN, 'maybe')
  t.match(failed.responses, [
    {
      error: {
        message: "in ensemble 'e', step 'only[1]': it broke",
        details: {
          step: 'only',
          item: '1',
          model: 'n',
          firstError: "STEP_TIMEOUT: step 'only': no answer within its timeout of 300 ms",
        },
      },
    },
  ])
  t.ok(attempts.slice(7).every(({ isCancelled }, i) => i === 1 || isCancelled))
  for (const attempt of attempts.slice(5)) attempt.fail(BROKEN, 'maybe')
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('whatever fails in whatever order, one answer comes and nothing is left', async () => {
  const what = fc.constantFrom('answer', 'broken', 'refuse', 'wait', 'leave')
  const event = fc.record({ attempt: fc.nat(8), what })
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(event, { maxLength: 12 }), async (isTimed, events) => {
      const rig = rigOf(isTimed ? { timeoutMs: 20 } : {})
      const { attempts, clock } = rig
      const ended = new Set<CallAttempt>()
      const scope = openCallScope({ clock })
      const asked = rig.ask(scope.context)
      const play = (attempt: CallAttempt | undefined, how: string): void => {
        if (how === 'wait') return clock.advance(15)
        if (how === 'leave') return scope.cancel(new ServeError('CANCELLED', 'left'))
        if (attempt === undefined || ended.has(attempt)) return
        ended.add(attempt)
        if (how === 'answer') attempt.answer(1)
        else if (how === 'refuse') attempt.fail(UNAVAILABLE, 'no')
        else attempt.fail(BROKEN, 'maybe')
      }
      for (const one of events) {
        play(attempts[one.attempt], one.what)
        await settle()
      }
      for (let round = 0; round < 8; round += 1) {
        for (let i = 0; i < attempts.length; i += 1) play(attempts[i], 'broken')
        play(undefined, 'wait')
        await settle()
      }
      scope.close()
      const calls = ['m', 'n'].map((model) => attempts.filter((one) => one.model === model).length)
      if (calls.some((count) => count > 3)) return false
      return seen(asked).length === 1 && rig.left.every((count) => count === 0)
    }),
    { numRuns: 300 },
  )
})
