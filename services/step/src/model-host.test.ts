import type { HostCallOptions, HostRequest, ModelHost } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import { FLAGS_RULE } from '@tutti/server'
import { RecordingControl } from '@tutti/server/testing'
import type { StepRequest } from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import {
  type AskOptions,
  type BearerResponse,
  ResponseStream,
  type RouterCalls,
} from '@tutti/transport'
import t from 'tap'
import { createModelHost } from './model-host.ts'
import { createSchedulerRig } from './testing/scheduler-rig.ts'
import { batchRequest, floats, requestContext } from './testing/step-builders.ts'

const quiet = new AbortController().signal

/** The routers as a test plays them: notes what they are told, and answers as it is told. */
class ScriptedRouters implements RouterCalls {
  readonly calls: {
    readonly envelope: Envelope
    readonly bytes: readonly Uint8Array[]
    readonly signal: Parameters<RouterCalls['call']>[2]['signal']
  }[] = []
  readonly asked: (readonly [string, unknown, AskOptions])[] = []
  answer: unknown = null
  /** What a call gives. */
  respond: () => AsyncIterable<BearerResponse> = () => responses()

  call(...[envelope, tensors, { signal }]: Parameters<RouterCalls['call']>) {
    this.calls.push({ envelope, bytes: tensors.map(({ bytes }) => bytes), signal })
    return this.respond()
  }

  async ask(...[question, argument, o]: Parameters<RouterCalls['ask']>): Promise<unknown> {
    this.asked.push([question, argument, o])
    if (this.answer instanceof Error) throw this.answer
    return this.answer
  }
}

async function* responses(count = 1): AsyncGenerator<BearerResponse> {
  for (let index = 0; index < count; index += 1) {
    const final = index + 1 === count
    yield { index, final, outputs: [floats('y', [1])], parameters: new Map() }
  }
}

/** A host over a running request of model `m`, which came in an envelope of its own. */
function open(own: Partial<Envelope> = {}, remainingMs?: number) {
  const rig = createSchedulerRig()
  const request = batchRequest({ id: 'r' })
  const cancel = new AbortController()
  const envelope: Envelope = {
    requestKey: 'key',
    model: 'm',
    version: 1,
    revision: 'aaa',
    step: 's',
    attempt: 1,
    context: request.context,
    requestedOutputs: [],
    inputs: [],
    ...own,
  }
  const limits = { envelope, ...(remainingMs !== undefined && { remainingMs }) }
  const submitted = rig.submit('r', request, { ...limits, signal: cancel.signal })
  const routers = new ScriptedRouters()
  const control = new RecordingControl()
  const host = createModelHost({
    replica: 'step-1',
    clock: rig.clock,
    routers: () => routers,
    control: () => control,
    findCaller: (caller) => rig.scheduler.findRunning(caller),
  })
  const infer = (o: Partial<HostRequest> = {}, options: Partial<HostCallOptions> = {}) =>
    collect(host, hostRequest(o), {
      signal: quiet,
      caller: request,
      isDecoupled: false,
      ...options,
    })
  return { ...rig, request, cancel, submitted, routers, control, host, infer }
}

function hostRequest(o: Partial<HostRequest> = {}): HostRequest {
  return {
    modelName: 'other',
    modelVersion: '',
    requestId: '',
    correlationId: 0n,
    flags: 0,
    timeoutUs: 0n,
    priority: 0n,
    parameters: new Map(),
    inputs: [],
    requestedOutputs: [],
    ...o,
  }
}

function collect(host: ModelHost, request: HostRequest, o: HostCallOptions) {
  const sink = new RecordedResponses()
  host.infer(request, sink, o)
  return sink.all
}

/** What the promise rejects with. */
function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'it did not fail',
    (error: unknown) => error,
  )
}

await t.test('what a model says and what its request brings make the envelope', async (t) => {
  const { infer, routers, clock } = open(
    { callers: ['outer'], traceparent: 'trace', tracestate: 'state' },
    5000,
  )
  clock.advance(1000)
  const parameters = new Map([['p', { kind: 'bool', value: true }]] as const)
  const inputs = [floats('x', [1, 4])]
  const got = await infer(
    {
      modelVersion: '7',
      requestId: 'bls',
      correlationId: 'sequence',
      flags: 3,
      timeoutUs: 5n,
      priority: 2n,
      parameters,
      inputs,
      requestedOutputs: ['y'],
    },
    { isDecoupled: true },
  )
  t.match(got, [{ final: true, outputs: [{ name: 'y' }] }])
  const [call] = routers.calls
  t.strictSame(call?.envelope, {
    requestKey: 'key',
    callers: ['outer', 'm'],
    remainingMs: 4000,
    traceparent: 'trace',
    tracestate: 'state',
    model: 'other',
    version: 7,
    revision: '',
    step: '',
    attempt: 1,
    context: requestContext({
      id: 'bls',
      correlationId: 'sequence',
      sequenceStart: true,
      sequenceEnd: true,
      timeoutUs: 5n,
      priority: 2n,
      parameters,
    }),
    requestedOutputs: ['y'],
    inputs,
    isDecoupled: true,
  })
  t.equal(call?.bytes[0], inputs[0]?.data, 'the bytes are the model’s own')
})

await t.test('without deadline, trace or callers the envelope says nothing of them', async (t) => {
  const { infer, routers } = open()
  for (const modelVersion of ['', '-1']) await infer({ modelVersion })
  for (const { envelope } of routers.calls) {
    t.equal(envelope.version, 0, 'the latest')
    t.same(envelope.callers, ['m'])
    for (const field of ['remainingMs', 'traceparent', 'tracestate', 'isDecoupled']) {
      t.notOk(field in envelope, field)
    }
  }
})

await t.test('a request that is over, or was none, has no callers', async (t) => {
  const { infer, routers } = open({ callers: ['outer'] }, 5000)
  const stranger: StepRequest = batchRequest()
  await infer({}, { caller: stranger })
  t.match(routers.calls[0]?.envelope, { requestKey: '', callers: [] })
})

await t.test('whatever goes wrong is a final response', async (t) => {
  const { infer, routers, host } = open()
  const cases: readonly (readonly [Partial<HostRequest>, string])[] = [
    [{ modelVersion: 'x' }, 'INVALID_VERSION'],
    [{ modelVersion: '-2' }, 'INVALID_VERSION'],
    [{ modelVersion: '0' }, 'MODEL_NOT_FOUND'],
  ]
  for (const [request, reason] of cases) {
    t.match(await infer(request), [{ final: true, outputs: [], error: { reason } }])
  }
  t.equal(routers.calls.length, 0)
  routers.respond = () => failed(new ServeError('STEP_LOST', 'the router is gone'))
  t.match(await infer(), [{ final: true, error: { reason: 'STEP_LOST' } }])

  const alone = createModelHost({
    replica: 'step-1',
    clock: open().clock,
    routers: () => undefined,
    control: () => undefined,
    findCaller: () => undefined,
  })
  const caller = batchRequest()
  t.match(await collect(alone, hostRequest(), { signal: quiet, caller, isDecoupled: false }), [
    { final: true, error: { reason: 'STEP_UNAVAILABLE', code: 'UNAVAILABLE' } },
  ])
  t.match(await failureOf(alone.isReady('m', '', { signal: quiet })), {
    reason: 'STEP_UNAVAILABLE',
  })
  t.ok(host)
})

await t.test('a call ends with whatever ends its caller', async (t) => {
  const ends = {
    'the engine cancels': [
      (o: Opened) => o.engine.abort(new ServeError('CANCELLED', 'x')),
      'CANCELLED',
    ],
    'the client goes away': [(o: Opened) => o.cancel.abort(), 'CANCELLED'],
    'the time is over': [(o: Opened) => o.clock.advance(5000), 'DEADLINE_EXCEEDED'],
    'the caller answers': [(o: Opened) => o.model.at(0).finish(), 'CANCELLED'],
    'the step stops': [(o: Opened) => o.scheduler.stop(), 'CANCELLED'],
  } as const
  for (const [what, [end, reason]] of Object.entries(ends)) {
    const opened = { ...open({}, 5000), engine: new AbortController() }
    opened.routers.respond = () => untilAborted(opened.routers)
    const got = opened.infer({}, { signal: opened.engine.signal })
    await new Promise(setImmediate)
    end(opened)
    t.match(await got, [{ final: true, error: { reason } }], what)
  }
})

type Opened = ReturnType<typeof open> & { readonly engine: AbortController }

/** As a bearer does: fails with the reason of the signal. */
function untilAborted({ calls }: ScriptedRouters): AsyncIterable<BearerResponse> {
  const signal = calls.at(-1)?.signal
  const stream = new ResponseStream<BearerResponse>()
  signal?.addEventListener('abort', () => stream.fail(signal.reason))
  return stream
}

function failed(error: ServeError): AsyncIterable<BearerResponse> {
  const stream = new ResponseStream<BearerResponse>()
  stream.fail(error)
  return stream
}

await t.test('whether a model is ready, a router says', async (t) => {
  const { host, routers } = open()
  routers.answer = true
  t.equal(await host.isReady('m', '-1', { signal: quiet }), true)
  routers.answer = null
  t.equal(await host.isReady('m', '2', { signal: quiet }), false)
  t.same(routers.asked, [
    ['ready', { model: 'm', version: '' }, { signal: quiet }],
    ['ready', { model: 'm', version: '2' }, { signal: quiet }],
  ])
})

await t.test('models load and unload others where this process lets them', async (t) => {
  const { host, control, clock } = open()
  const files = new Map([['1/model.onnx', new Uint8Array(3)]])
  await host.load('m', { config: '{}', files, signal: quiet })
  await host.load('m', { config: '', files: new Map(), signal: quiet })
  await host.unload('m', { unloadDependents: true, signal: quiet })
  t.same(control.loads, [
    ['m', { config: '{}', files }],
    ['m', { files: new Map() }],
  ])
  t.same(control.unloads, [['m', true]])
  for (const none of [undefined, FLAGS_RULE]) {
    const refusing = createModelHost({
      replica: 'step-1',
      clock,
      routers: () => undefined,
      control: () => none,
      findCaller: () => undefined,
    })
    const refused: (readonly [string, Promise<void>])[] = [
      ['load', refusing.load('m', { config: '', files: new Map(), signal: quiet })],
      ['unload', refusing.unload('m', { unloadDependents: false, signal: quiet })],
    ]
    for (const [what, call] of refused) {
      t.match(await failureOf(call), { reason: 'MODEL_CONTROL_REFUSED' }, what)
    }
  }
})

await t.test(
  'a call for a batch lasts as long as one of its requests, and has the longest time',
  async (t) => {
    const rig = createSchedulerRig({ instances: 2 })
    const routers = new ScriptedRouters()
    routers.respond = () => new ResponseStream<BearerResponse>()
    const host = createModelHost({
      replica: 'step-1',
      clock: rig.clock,
      routers: () => routers,
      control: () => undefined,
      findCaller: (caller) => rig.scheduler.findRunning(caller),
    })
    const requests = ['a', 'b'].map((id) => batchRequest({ id }))
    const [first, second] = requests.map((request, i) => {
      const cancel = new AbortController()
      const envelope: Envelope = {
        requestKey: `key ${i}`,
        model: 'm',
        version: 1,
        revision: 'aaa',
        step: '',
        attempt: 1,
        callers: i === 1 ? ['outer'] : [],
        context: request.context,
        requestedOutputs: [],
        inputs: [],
      }
      rig.submit(`${i}`, request, { envelope, remainingMs: 1000 + i, signal: cancel.signal })
      return cancel
    })
    const [caller = batchRequest({}), ...batch] = requests
    const got = collect(host, hostRequest(), { signal: quiet, caller, batch, isDecoupled: false })
    await new Promise(setImmediate)
    const [call] = routers.calls
    t.match(call?.envelope, { requestKey: 'key 1', callers: ['outer', 'm'], remainingMs: 1001 })
    first?.abort(new ServeError('CANCELLED', ''))
    t.equal(call?.signal.aborted, false, 'the other one still waits')
    second?.abort(new ServeError('CANCELLED', ''))
    t.equal(call?.signal.aborted, true)
    // The routers of this test never answer; a call that is cancelled ends all the same.
    void got
  },
)
