import { deepStrictEqual } from 'node:assert/strict'
import { type CallContext, openCallScope } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { InferRequest, StepResponse } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  chain,
  ensembleIo,
  floats,
  oneToOne,
  quiet,
  request,
  type ScriptedModel,
  scriptedRouter,
  settle,
  step,
} from './testing/index.ts'

const one = chain('slow')
const outer = `${ensembleIo} ensemble_scheduling { ${step('inner', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`
const RULES = { stepNames: ['only'], dependsOn: [[]] }

interface Waiting {
  readonly answer: () => void
  readonly fail: (error: ServeError) => void
}

/** A model whose requests a test ends. */
function slowModel(): { readonly model: ScriptedModel; readonly waiting: Waiting[] } {
  const waiting: Waiting[] = []
  const model: ScriptedModel = {
    config: oneToOne,
    run: (_inputs, _envelope, signal) =>
      new Promise((resolve, reject) => {
        const onAbort = (): void => reject(ServeError.from(signal.reason))
        signal.addEventListener('abort', onAbort, { once: true })
        waiting.push({ answer: () => resolve(new Map([['Y', floats('Y', [1])]])), fail: reject })
      }),
  }
  return { model, waiting }
}

async function outcome(stream: AsyncIterable<StepResponse>): Promise<string> {
  try {
    for await (const _ of stream);
    return 'answered'
  } catch (error) {
    const { code, message } = ServeError.from(error)
    return `${code} ${message}`
  }
}

await t.test('errors and envelopes name a step as the rules do', async (t) => {
  const { model, waiting } = slowModel()
  const { router, envelopes } = await scriptedRouter({
    models: { slow: model },
    ensembles: { E: one },
    rules: { E: RULES },
  })
  const stream = responsesTo(router.resolve('E', ''), request('IN'), quiet)
  const failed = (async () => {
    for await (const _ of stream);
  })()
  await settle()
  t.equal(envelopes[0]?.step, 'only')
  waiting[0]?.fail(new ServeError('ENGINE_FAILED', 'it broke'))
  await t.rejects(failed, {
    code: 'INTERNAL',
    details: { step: 'only', model: 'slow', ensemble: 'E' },
  })
})

await t.test('the ensemble’s timeout ends a request, with its name in the error', async (t) => {
  const clock = createManualClock()
  const { model, waiting } = slowModel()
  const { router, envelopes } = await scriptedRouter({
    models: { slow: model },
    ensembles: { inner: one, E: outer },
    rules: { inner: { ...RULES, timeoutMs: 500 } },
    clock,
  })
  for (const [name, prefix] of [
    ['inner', "in ensemble 'inner', "],
    ['E', "in ensemble 'E', in ensemble 'inner', "],
  ] as const) {
    const ended = outcome(responsesTo(router.resolve(name, ''), request('IN'), quiet))
    await settle()
    t.equal(envelopes.at(-1)?.remainingMs, 500)
    clock.advance(500)
    t.equal(await ended, `DEADLINE_EXCEEDED ${prefix}the ensemble's timeout of 500 ms exceeded`)
    t.equal(clock.pending, 0)
  }
  t.equal(waiting.length, 2)
  await settle()
  t.equal(router.memory.count, 0)
})

await t.test('of deadline and timeout the sooner ends a request', async (t) => {
  const clock = createManualClock()
  const { model } = slowModel()
  const { router, envelopes } = await scriptedRouter({
    models: { slow: model },
    ensembles: { E: one },
    rules: { E: { ...RULES, timeoutMs: 500 } },
    clock,
  })
  for (const [remainingMs, sooner, name] of [
    [200, 200, 'deadline'],
    [500, 500, 'deadline'],
    [900, 500, "the ensemble's timeout"],
  ] as const) {
    const scope = openCallScope({ clock, remainingMs })
    const ended = outcome(responsesTo(router.resolve('E', ''), request('IN'), scope.context))
    await settle()
    t.equal(envelopes.at(-1)?.remainingMs, sooner)
    clock.advance(sooner)
    t.equal(await ended, `DEADLINE_EXCEEDED in ensemble 'E', ${name} of ${sooner} ms exceeded`)
    scope.close()
    t.equal(clock.pending, 0)
  }
})

await t.test(
  'a step that is first to see that the time is over does not change the error',
  async (t) => {
    const clock = createManualClock()
    const { model, waiting } = slowModel()
    const { router } = await scriptedRouter({
      models: { slow: model },
      ensembles: { E: one },
      rules: { E: { ...RULES, timeoutMs: 500 } },
      clock,
    })
    const over = new ServeError('DEADLINE_EXCEEDED', 'deadline of 499 ms exceeded')
    const ended = outcome(responsesTo(router.resolve('E', ''), request('IN'), quiet))
    await settle()
    clock.advance(499.5)
    waiting[0]?.fail(over)
    await settle()
    clock.advance(0.5)
    t.match(await ended, "the ensemble's timeout of 500 ms exceeded")
    const other = outcome(responsesTo(router.resolve('E', ''), request('IN'), quiet))
    await settle()
    clock.advance(100)
    waiting[1]?.fail(over)
    t.match(await other, 'deadline of 499 ms exceeded', 'it was not the ensemble’s time')
  },
)

await t.test('requests beyond the bound are refused at once', async (t) => {
  const { model, waiting } = slowModel()
  const { router } = await scriptedRouter({
    models: { slow: model },
    ensembles: { inner: one, E: outer },
    rules: { inner: { ...RULES, maxInFlightRequests: 2 } },
  })
  const inner = () => outcome(responsesTo(router.resolve('inner', ''), request('IN'), quiet))
  const through = () => outcome(responsesTo(router.resolve('E', ''), request('IN'), quiet))
  const text = "ensemble 'inner' is overloaded: 2 requests are in flight, the bound is 2"
  const first = inner()
  const second = through()
  await settle()
  t.equal(await inner(), `RESOURCE_EXHAUSTED ${text}`)
  t.equal(await through(), `RESOURCE_EXHAUSTED in ensemble 'E', ${text}`)
  const [pending] = await router.statistics('inner', '')
  t.equal(pending?.fail.count, 0n, 'what was refused is not counted, as in Triton')
  waiting[0]?.answer()
  t.equal(await first, 'answered')
  const third = inner()
  await settle()
  for (const one of waiting) one.answer()
  t.same(await Promise.all([second, third]), ['answered', 'answered'])
})

const GONE = new ServeError('CANCELLED', 'the client went away')
const ENDINGS = {
  answer: 'answered',
  fail: 'INTERNAL',
  cancel: 'CANCELLED',
  timeout: 'DEADLINE_EXCEEDED',
  malformed: 'INVALID_ARGUMENT',
  gone: 'CANCELLED',
} as const
type Ending = keyof typeof ENDINGS

await t.test('whatever ends a request gives its place back once', async (t) => {
  const ending = fc.constantFrom<Ending>('answer', 'fail', 'cancel', 'timeout', 'malformed', 'gone')
  await t.resolves(
    fc.assert(
      fc.asyncProperty(fc.array(ending, { minLength: 1, maxLength: 8 }), async (endings) => {
        const clock = createManualClock()
        const { model, waiting } = slowModel()
        const { router } = await scriptedRouter({
          models: { slow: model },
          ensembles: { E: one },
          rules: { E: { ...RULES, maxInFlightRequests: 1, timeoutMs: 1000 } },
          clock,
        })
        const infer = (asked: InferRequest, context: CallContext): Promise<string> =>
          outcome(responsesTo(router.resolve('E', ''), asked, context))
        for (const how of endings) {
          const client = openCallScope({ clock })
          if (how === 'gone') client.cancel(GONE)
          const asked = how === 'malformed' ? { ...request('IN'), inputs: [] } : request('IN')
          const ended = infer(asked, client.context)
          await settle()
          if (how !== 'malformed' && how !== 'gone')
            deepStrictEqual((await infer(request('IN'), quiet)).split(' ')[0], 'RESOURCE_EXHAUSTED')
          const ways: Partial<Record<Ending, () => void>> = {
            answer: () => waiting.at(-1)?.answer(),
            fail: () => waiting.at(-1)?.fail(new ServeError('ENGINE_FAILED', 'it broke')),
            cancel: () => client.cancel(GONE),
            timeout: () => clock.advance(1000),
          }
          ways[how]?.()
          deepStrictEqual((await ended).split(' ')[0], ENDINGS[how])
          client.close()
        }
        await settle()
        deepStrictEqual([router.memory.count, clock.pending], [0, 0])
      }),
      { numRuns: 60 },
    ),
  )
})
