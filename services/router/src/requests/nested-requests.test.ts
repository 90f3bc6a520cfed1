import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import { RESPONSE_WINDOW, type StepResponse } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import { sendEnvelope } from '@tutti/transport/testing'
import t from 'tap'
import {
  collect,
  ensembleIo,
  floats,
  oneToOne,
  quiet,
  type ScriptedModel,
  scriptedRouter,
  step,
  toFloats,
} from '../testing/index.ts'

const plus = (more: number): ScriptedModel => ({
  config: oneToOne,
  run: (inputs) =>
    new Map([
      [
        'Y',
        floats(
          'Y',
          [...(inputs.get('X') ?? [])].map((x) => x + more),
        ),
      ],
    ]),
})
const ensemble = `${ensembleIo} ensemble_scheduling { max_inflight_requests: 1
  ${step('one', 'IN', 't')} ${step('two', 't', 'OUT')} }`

/** The envelope of a request that model `caller` makes. */
function nested(model: string, o: Partial<Envelope> = {}): Envelope {
  return {
    requestKey: 'key',
    model,
    version: 0,
    revision: '',
    step: '',
    attempt: 1,
    callers: ['caller'],
    context: {
      id: 'bls',
      correlationId: 5n,
      sequenceStart: false,
      sequenceEnd: false,
      priority: 1n,
      timeoutUs: 7n,
      parameters: new Map([['p', { kind: 'string', value: 'q' }]]),
    },
    requestedOutputs: [],
    inputs: [{ name: 'X', datatype: 'FP32', shape: [1] }],
    ...o,
  }
}

/** A router that is called as a step calls it. */
async function open(o: Parameters<typeof scriptedRouter>[0]) {
  const scripted = await scriptedRouter(o)
  const { nested: find } = scripted.router
  const tensors = [{ bytes: floats('X', [1]).data }]
  const call = (envelope: Envelope, signal = quiet): AsyncIterable<StepResponse> =>
    sendEnvelope(find, { replica: 'router' }, envelope, tensors, signal)
  return { ...scripted, call }
}

const failureOf = (stream: AsyncIterable<StepResponse>): Promise<unknown> =>
  collect(stream).then(
    (responses) => responses,
    (error: unknown) => error,
  )

await t.test('a model is called as a client calls it, and knows who called', async (t) => {
  const { call, envelopes, router } = await open({ models: { one: plus(1) } })
  const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  const [response] = await collect(
    call(nested('one', { remainingMs: 60_000, requestedOutputs: ['Y', 'Y'], ...trace })),
  )
  t.same([...toFloats(response?.outputs[0]?.data)], [2])
  const [envelope] = envelopes
  t.match(envelope, {
    model: 'one',
    version: 1,
    revision: 'revision-1',
    callers: ['caller'],
    requestedOutputs: ['Y'],
    context: { id: 'bls', correlationId: 5n, priority: 1n, timeoutUs: 7n },
  })
  t.equal(envelope?.context.parameters.size, 1)
  const left = envelope?.remainingMs ?? 0
  t.ok(left > 0 && left <= 60_000, `${left} ms are left`)
  t.equal(envelope?.traceparent?.slice(0, 35), trace.traceparent.slice(0, 35))
  t.equal(router.memory.count, 0)
})

await t.test('so is an ensemble, whose steps know it too', async (t) => {
  const { call, envelopes } = await open({
    models: { one: plus(1), two: plus(10) },
    ensembles: { e: ensemble },
  })
  const inputs = [{ name: 'IN', datatype: 'FP32', shape: [1] }] as const
  const [response] = await collect(call(nested('e', { inputs })))
  t.same([...toFloats(response?.outputs[0]?.data)], [12])
  t.same(
    envelopes.map(({ step, callers }) => [step, callers]),
    [
      ['one', ['caller']],
      ['two', ['caller']],
    ],
  )
})

await t.test('a call that cannot be made fails with its reason, as for a client', async (t) => {
  const { call, envelopes } = await open({
    models: { one: plus(1), broken: { ...plus(1), loadError: 'Internal: no' } },
  })
  const cases: readonly (readonly [Envelope, string])[] = [
    [nested('nope'), 'MODEL_NOT_FOUND'],
    [nested('broken', { version: 1 }), 'MODEL_NOT_READY'],
    [nested('one', { version: 9 }), 'MODEL_NOT_FOUND'],
    [nested('one', { callers: Array.from({ length: 11 }, () => 'a') }), 'NESTING_TOO_DEEP'],
  ]
  for (const [envelope, reason] of cases) {
    t.match(await failureOf(call(envelope)), { reason })
  }
  t.same(envelopes, [])
  t.match((await collect(call(nested('one', { callers: ['a', 'b'], version: 1 }))))[0]?.final, true)
})

await t.test('models that call one another are stopped at the bound, by name', async (t) => {
  const { call } = await open({ models: { one: plus(1) }, nesting: { maxDepth: 2 } })
  t.match(await collect(call(nested('one', { callers: ['a', 'b'] }))), [{ final: true }])
  t.match(await failureOf(call(nested('one', { callers: ['a', 'b', 'a'] }))), {
    code: 'FAILED_PRECONDITION',
    reason: 'NESTING_TOO_DEEP',
    message: "'a' calls 'b' calls 'a' calls 'one': 3 calls deep, want at most 2",
  })
})

await t.test('they have a bound of their own, and give it back', async (t) => {
  const ends: (() => void)[] = []
  const held: ScriptedModel = {
    ...plus(1),
    run: async () => {
      await new Promise<void>((resolve) => ends.push(resolve))
      return new Map([['Y', floats('Y', [0])]])
    },
  }
  const { call } = await open({ models: { held }, nesting: { maxRequests: 2 } })
  const taken = [collect(call(nested('held'))), collect(call(nested('held')))]
  await new Promise(setImmediate)
  t.match(await failureOf(call(nested('held'))), { reason: 'OVERLOADED' })
  for (const end of ends.splice(0)) end()
  await Promise.all(taken)
  const next = collect(call(nested('held')))
  await new Promise(setImmediate)
  for (const end of ends.splice(0)) end()
  t.match(await next, [{ final: true }])
})

await t.test('a decoupled model streams, to a caller that takes many', async (t) => {
  let sent = 0
  const many: ScriptedModel = {
    config: `${oneToOne} model_transaction_policy { decoupled: true }`,
    stream: async (sink) => {
      for (sent = 0; sent < 100; await sink.ready()) {
        const index = sent++
        const outputs = [floats('Y', [index])]
        sink.send({ index, final: sent === 100, outputs, parameters: new Map() })
      }
    },
  }
  const { call } = await open({ models: { many } })
  t.match(await failureOf(call(nested('many'))), {
    reason: 'UNSUPPORTED',
    message: /decoupled transaction policy/,
  })
  t.equal(sent, 0)
  const responses = call(nested('many', { isDecoupled: true }))
  for (let i = 0; i < 50; i += 1) await new Promise(setImmediate)
  t.equal(sent, RESPONSE_WINDOW.responses, 'a slow caller slows it down')
  const got = await collect(responses)
  t.same(
    got.map(({ index }) => index),
    Array.from({ length: 100 }, (_, i) => i),
  )
})

await t.test('cancel and time reach the model that is called', async (t) => {
  const reasons: unknown[] = []
  const held: ScriptedModel = {
    ...plus(1),
    run: (_inputs, _envelope, signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason)
          reject(ServeError.from(signal.reason))
        }),
      ),
  }
  const { call } = await open({ models: { held } })
  const cancel = new AbortController()
  const cancelled = failureOf(call(nested('held'), cancel))
  await new Promise(setImmediate)
  cancel.abort(new ServeError('CANCELLED', 'the caller is answered'))
  t.match(await cancelled, { reason: 'CANCELLED' })
  t.match(await failureOf(call(nested('held', { remainingMs: 30 }))), {
    reason: 'DEADLINE_EXCEEDED',
  })
  t.match(reasons, [{ reason: 'CANCELLED' }, { reason: 'DEADLINE_EXCEEDED' }])
})

await t.test(
  'an ensemble that a step of it calls does not wait for the slot of that step',
  { timeout: 20_000 },
  async (t) => {
    // `one` calls the ensemble it is a step of, once: with one slot for each step both would wait for ever.
    const opened: { call?: (envelope: Envelope) => AsyncIterable<StepResponse> } = {}
    const one: ScriptedModel = {
      config: oneToOne,
      run: async (inputs, { callers }) => {
        const [x = 0] = inputs.get('X') ?? []
        if (callers !== undefined) return new Map([['Y', floats('Y', [x])]])
        const inner = nested('e', { inputs: [{ name: 'IN', datatype: 'FP32', shape: [1] }] })
        const [got] = await collect(opened.call?.(inner) ?? nothing())
        return new Map([['Y', floats('Y', [...toFloats(got?.outputs[0]?.data)])]])
      },
    }
    const { router, call } = await open({
      models: { one, two: plus(10) },
      ensembles: { e: ensemble },
    })
    opened.call = call
    const { context } = nested('e')
    const request = { context, inputs: [floats('IN', [1])], requestedOutputs: [] }
    const ask = async (): Promise<number[]> => {
      const all: number[] = []
      for await (const { outputs } of responsesTo(router.resolve('e', ''), request, quiet)) {
        all.push(...toFloats(outputs[0]?.data))
      }
      return all
    }
    t.same(await Promise.all([ask(), ask(), ask()]), [[21], [21], [21]])
  },
)

async function* nothing(): AsyncGenerator<StepResponse> {}

await t.test('models ask whether others are ready', async (t) => {
  const { router } = await scriptedRouter({ models: { one: plus(1) } })
  t.equal(await router.answer('ready', { model: 'one', version: '' }), true)
  t.equal(await router.answer('ready', { model: 'nope', version: '' }), false)
  const cases = [
    ['ready', { model: 'one', version: 'x' }, 'INVALID_VERSION'],
    ['ready', { model: 'one' }, 'MALFORMED_MESSAGE'],
    ['ready', null, 'MALFORMED_MESSAGE'],
    ['describe', null, 'UNSUPPORTED'],
  ] as const
  for (const [question, argument, reason] of cases) {
    t.match(await router.answer(question, argument).catch((error: unknown) => error), { reason })
  }
})
