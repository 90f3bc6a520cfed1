// needs: nats
import { startFaultProxy, startNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import type { AnswerQuestion } from '../endpoints.ts'
import {
  brokerAt,
  collect,
  echo,
  envelope,
  failureOf,
  openTestRouter,
  openTestStep,
  ref,
  sendTo,
  type Teardown,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import { executing } from '../testing/envelopes.ts'

const quiet = { signal: new AbortController().signal }
const MIB = 1024 * 1024

/** A router and a step that answers so. */
async function open(
  t: Teardown,
  answer: AnswerQuestion,
  settings: Parameters<typeof openTestStep>[4] = {},
) {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const broker = brokerAt(server.url)
  const router = await openTestRouter(t, broker, 'router')
  const step = await openTestStep(t, broker, 'step', echo, { answer, ...settings })
  await until(() => router.changed.length > 0 && step.transport.members.get('router') === 1)
  return { server, broker, router, step }
}

await t.test(
  'questions are answered, and errors of an answer arrive as they are',
  WITH_NATS,
  async (t) => {
    const { router, step } = await open(t, async (question, argument) => {
      if (question === 'statistics') throw new ServeError('MODEL_NOT_FOUND', 'no such model')
      return { question, argument, absent: undefined }
    })
    t.same(await router.member.ask('step', 'ready', { a: [1] }, quiet), {
      question: 'ready',
      argument: { a: [1] },
    })
    t.match(await failureOf(router.member.ask('step', 'statistics', undefined, quiet)), {
      reason: 'MODEL_NOT_FOUND',
      details: { replica: 'step' },
    })
    const cancel = new AbortController()
    cancel.abort(new ServeError('CANCELLED', 'enough'))
    t.match(await failureOf(router.member.ask('step', 'ready', {}, cancel)), {
      reason: 'CANCELLED',
    })
    t.match(
      await step.routers.ask('ready', { model: 'm' }, quiet),
      { question: 'ready', argument: { model: 'm' }, member: 'router' },
      'and a step asks its routers in the same way',
    )
  },
)

await t.test('arguments and answers may be larger than a message', WITH_NATS, async (t) => {
  const models = Array.from({ length: 500 }, (_, i) => ({
    name: `model ${i}`,
    config: `${i}-`.repeat(4000),
  }))
  const { router } = await open(t, async (_question, argument) => ({ argument, models }))
  const argument = 'x'.repeat(2 * MIB)
  const answer = await router.member.ask('step', 'ready', argument, quiet)
  t.ok(JSON.stringify(models).length > 7 * MIB)
  t.strictSame(answer, { argument, models })
})

await t.test('a question that is not known is refused by name', WITH_NATS, async (t) => {
  const { router } = await open(t, () => Promise.reject(new Error('not asked')))
  for (const step of ['load', 'unload', 'wanted']) {
    const bytes = [Buffer.from('{"model":"m"}'), tensorBytes(2 * MIB)]
    const inputs = ['argument', '1/model.onnx'].map((name, i) => ({
      name,
      datatype: 'UINT8' as const,
      shape: [bytes[i]?.byteLength ?? 0],
    }))
    const question = envelope(0, { model: '', version: 0, revision: '', step, inputs })
    const answered = collect(sendTo(router, { replica: 'step' }, question, bytes.map(ref), quiet))
    t.match(await failureOf(answered), {
      reason: 'UNSUPPORTED',
      message: `question '${step}': want describe, statistics, ready, unpinned`,
    })
  }
  t.match(
    await collect(sendTo(router, { replica: 'step' }, envelope(1), [ref(tensorBytes(1))], quiet)),
    [{ final: true }],
    'and requests go on',
  )
})

await t.test('what is over the bound of answers is refused, either way', WITH_NATS, async (t) => {
  const settings = { answerBytes: MIB }
  const { router, broker } = await open(t, async () => 'x'.repeat(3 * MIB), { settings })
  const tight = await openTestRouter(t, broker, 'tight', { settings })
  await until(() => tight.changed.length > 0)
  const asked = [
    failureOf(router.member.ask('step', 'ready', 'x'.repeat(2 * MIB), quiet)),
    failureOf(tight.member.ask('step', 'ready', {}, quiet)),
  ]
  for (const failure of await Promise.all(asked)) {
    t.match(failure, { reason: 'MESSAGE_TOO_LARGE', details: { replica: 'step' } })
  }
  const zeros = Array.from({ length: 2 ** 20 + 1 }, () => 0)
  await openTestStep(t, broker, 'many', echo, { answer: async () => zeros })
  await until(() => router.changed.includes('many'))
  for (const failure of [
    await failureOf(router.member.ask('many', 'statistics', {}, quiet)),
    await failureOf(router.member.ask('many', 'ready', zeros, quiet)),
  ]) {
    t.match(failure, { reason: 'MESSAGE_TOO_LARGE', message: 'JSON of more than 1048576 values' })
  }
})

await t.test(
  'a step that has no slot free, or drains, still answers questions, so many at a time',
  WITH_NATS,
  async (t) => {
    const ends: (() => void)[] = []
    const { router, step } = await open(
      t,
      (question) =>
        question === 'ready'
          ? Promise.resolve(question)
          : new Promise((resolve) => ends.push(() => resolve(question))),
      {
        settings: { maxCalls: 1, maxAsks: 2 },
        executor: executing(() => new Promise(() => {})),
      },
    )
    const work = new AbortController()
    const call = (): Promise<unknown> =>
      collect(sendTo(router, { replica: 'step' }, envelope(0), [ref(tensorBytes(0))], work))
    const working = failureOf(call())
    t.match(await failureOf(call()), { reason: 'OVERLOADED' })
    t.equal(await router.member.ask('step', 'ready', {}, quiet), 'ready')
    const drained = step.drain(quiet)
    const asked = [1, 2].map(() => router.member.ask('step', 'statistics', {}, quiet))
    await until(() => ends.length === 2)
    t.match(await failureOf(router.member.ask('step', 'ready', {}, quiet)), {
      reason: 'OVERLOADED',
    })
    for (const end of ends) end()
    t.same(await Promise.all(asked), ['statistics', 'statistics'])
    work.abort(new ServeError('CANCELLED', 'enough'))
    t.match(await working, { reason: 'CANCELLED' })
    await drained
  },
)

await t.test(
  'a question without an answer ends with its time, its cancel, or the member',
  WITH_NATS,
  async (t) => {
    const { server, router, broker } = await open(t, () => new Promise(() => {}))
    t.match(await failureOf(router.member.ask('step', 'ready', {}, { ...quiet, timeoutMs: 100 })), {
      reason: 'STEP_UNAVAILABLE',
      message: 'no answer came within 100 ms',
    })
    const cancel = new AbortController()
    const asked = failureOf(router.member.ask('step', 'ready', {}, cancel))
    cancel.abort(new ServeError('CANCELLED', 'enough'))
    t.match(await asked, { reason: 'CANCELLED' })

    const proxy = await startFaultProxy({ port: server.port })
    t.teardown(() => proxy.close())
    await openTestStep(
      t,
      { ...broker, servers: [`nats://127.0.0.1:${proxy.port}`] },
      'mortal',
      echo,
      {
        answer: () => new Promise(() => {}),
      },
    )
    await until(() => router.changed.includes('mortal'))
    const lost = failureOf(
      router.member.ask('mortal', 'ready', {}, { ...quiet, timeoutMs: 600_000 }),
    )
    proxy.refuse()
    proxy.cut()
    t.match(await lost, { code: 'UNAVAILABLE', details: { replica: 'mortal' } })
    proxy.accept()
  },
)
