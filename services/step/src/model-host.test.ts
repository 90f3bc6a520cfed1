import type { HostCallOptions, HostRequest, ModelHost } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import { FLAGS_RULE } from '@tutti/serving'
import { RecordingControl } from '@tutti/serving/testing'
import type {
  ExecuteOptions,
  Executor,
  InferRequest,
  ModelTarget,
  RequestObserver,
  RequestOrigin,
  ResponseSink,
  StepRequest,
} from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import type { AskOptions, RouterCalls } from '@tutti/transport'
import t from 'tap'
import { createModelHost } from './model-host.ts'
import { createSchedulerRig } from './testing/scheduler-rig.ts'
import { batchRequest, floats, requestContext } from './testing/step-builders.ts'

const quiet = new AbortController().signal

/** The routers as a test plays them: notes what they are told, and answers as it is told. */
class ScriptedRouters implements RouterCalls {
  readonly calls: {
    readonly target: ModelTarget
    readonly request: InferRequest
    readonly options: ExecuteOptions
  }[] = []
  readonly asked: (readonly [string, unknown, AskOptions])[] = []
  answer: unknown = null
  /** The answer that a call gets. */
  respond: (sink: ResponseSink, o: ExecuteOptions) => void = (sink) =>
    sink.send({ index: 0, final: true, outputs: [floats('y', [1])], parameters: new Map() })

  readonly executor = (target: ModelTarget): Executor => ({
    execute: (request, sink, options) => {
      this.calls.push({ target, request, options })
      this.respond(sink, options)
    },
  })

  async ask(...[question, argument, o]: Parameters<RouterCalls['ask']>): Promise<unknown> {
    this.asked.push([question, argument, o])
    if (this.answer instanceof Error) throw this.answer
    return this.answer
  }
}

/** Where a request of a test comes from. */
const ORIGIN: RequestOrigin = { requestKey: 'key', step: 's', attempt: 1 }

/** A host over a running request of model `m`, which came with options of its own. */
function open(
  own: Partial<ExecuteOptions> = {},
  about: Parameters<typeof createSchedulerRig>[0] = {},
) {
  const rig = createSchedulerRig(about)
  const request = batchRequest({ id: 'r' })
  const cancel = new AbortController()
  const submitted = rig.submit('r', request, { origin: ORIGIN, ...own, signal: cancel.signal })
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

/** Returns the error that the promise rejects with. */
function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'it did not fail',
    (error: unknown) => error,
  )
}

await t.test('what a model says and what its request brings make the call', async (t) => {
  const trace = { traceparent: 'trace', tracestate: 'state' }
  const origin = { ...ORIGIN, callers: ['outer'] }
  const { infer, routers, clock } = open({ origin, trace, deadlineAt: 5000 })
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
  t.strictSame(call?.target, { model: 'other', version: 7, revision: '' })
  const { signal, ...options } = call?.options ?? {}
  t.ok(signal)
  t.strictSame(options, {
    origin: {
      requestKey: 'key',
      callers: ['outer', 'm'],
      step: '',
      attempt: 1,
      isDecoupled: true,
    },
    deadlineAt: 5000,
    trace,
  })
  t.strictSame(call?.request, {
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
  })
  t.equal(call?.request.inputs[0]?.data, inputs[0]?.data, 'the bytes are the model’s own')
})

await t.test(
  'a call that got the trace of its request is traced beneath it, no other',
  async (t) => {
    const observer: RequestObserver = { began: () => undefined }
    const { infer, routers, request } = open({ observer })
    await infer()
    await infer({}, { traced: request })
    await infer({}, { traced: batchRequest() })
    const given = routers.calls.map(({ options }) => options.observer)
    t.same(
      given.map((one) => one === observer),
      [false, true, false],
    )
    t.equal(given[2], undefined, 'of a request that is over')
  },
)

await t.test('without deadline, trace or callers the call says nothing of them', async (t) => {
  const { infer, routers } = open()
  for (const modelVersion of ['', '-1']) await infer({ modelVersion })
  t.equal(routers.calls.length, 2)
  for (const { target, options } of routers.calls) {
    t.equal(target.version, 0, 'the latest')
    const origin = { requestKey: 'key', callers: ['m'], step: '', attempt: 1 }
    t.strictSame({ ...options, signal: undefined }, { signal: undefined, origin })
  }
})

await t.test('a request that is over, or was none, has no callers', async (t) => {
  const { infer, routers } = open({ origin: { ...ORIGIN, callers: ['outer'] }, deadlineAt: 5000 })
  const stranger: StepRequest = batchRequest()
  await infer({}, { caller: stranger })
  const { origin, deadlineAt } = routers.calls[0]?.options ?? {}
  t.match(origin, { requestKey: '', callers: [] })
  t.equal(deadlineAt, undefined)
})

await t.test('a call that belongs to no request has a model and a time of its own', async (t) => {
  const { infer, routers, host, clock } = open({ deadlineAt: 5000 })
  const background = { model: 'm', timeoutMs: 700 }
  const options = { signal: quiet, isDecoupled: false }
  await collect(host, hostRequest(), { ...options, background })
  await collect(host, hostRequest(), { ...options, background: { model: 'm', timeoutMs: 0 } })
  const [limited, unlimited] = routers.calls.map((call) => call.options)
  t.match(limited?.origin, { requestKey: '', callers: ['m'] })
  t.equal(limited?.deadlineAt, clock.now() + 700)
  t.equal(unlimited?.deadlineAt, undefined)
  await infer()
  t.equal(routers.calls.at(-1)?.options.deadlineAt, 5000, 'that of the caller where there is one')
})

await t.test('whatever goes wrong is a failure', async (t) => {
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
  routers.respond = (sink) => sink.fail(new ServeError('STEP_LOST', 'the router is gone'), 'maybe')
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
    const opened = { ...open({ deadlineAt: 5000 }), engine: new AbortController() }
    opened.routers.respond = untilAborted
    const got = opened.infer({}, { signal: opened.engine.signal })
    end(opened)
    t.match(await got, [{ final: true, error: { reason } }], what)
  }
})

type Opened = ReturnType<typeof open> & { readonly engine: AbortController }

await t.test(
  'an error of a called model is no fault of the device of the model that passes it on',
  async (t) => {
    const told: unknown[] = []
    const deviceWatch = {
      executed: (...[, failure]: readonly [number, ServeError | undefined]) =>
        void told.push(failure?.message),
    }
    const { infer, routers, model, submit, submitted } = open({}, { deviceWatch })
    const text = 'CUDA failure 700: an illegal memory access was encountered'
    routers.respond = (sink) => sink.fail(new ServeError('ENGINE_FAILED', text), 'maybe')
    await infer()
    const fail = (): void => {
      const error = new ServeError('ENGINE_FAILED', `in process 'm', message: ${text}`)
      model.at(-1).send(0, { error })
      model.at(-1).end()
    }
    fail()
    await submitted.sink.all
    const own = submit('own')
    await model.begun(2)
    fail()
    await own.sink.all
    t.same(told, [undefined, `in process 'm', message: ${text}`])
  },
)

/** As executors do: fails with the reason of the signal. */
function untilAborted(sink: ResponseSink, { signal }: ExecuteOptions): void {
  signal.addEventListener('abort', () => sink.fail(ServeError.from(signal.reason), 'maybe'))
}

await t.test('a router hears whether the model is ready for more', async (t) => {
  const { host, request, routers } = open()
  const sink = new RecordedResponses()
  const ready = Promise.resolve()
  const busy = Object.assign(sink, { ready: () => ready })
  const heard: unknown[] = []
  routers.respond = (given) => {
    for (const final of [false, true]) {
      given.send({ index: Number(final), final, outputs: [], parameters: new Map() })
      heard.push(given.ready?.())
    }
  }
  host.infer(hostRequest(), busy, { signal: quiet, caller: request, isDecoupled: true })
  t.match(await sink.all, [{ index: 0 }, { index: 1, final: true }])
  t.equal(heard[0], ready)
})

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
    routers.respond = untilAborted
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
      const callers = i === 1 ? ['outer'] : []
      const origin = { requestKey: `key ${i}`, step: '', attempt: 1, callers }
      rig.submit(`${i}`, request, { origin, deadlineAt: 1000 + i, signal: cancel.signal })
      return cancel
    })
    const [caller = batchRequest({}), ...batch] = requests
    const got = collect(host, hostRequest(), { signal: quiet, caller, batch, isDecoupled: false })
    const { signal, ...options } = routers.calls[0]?.options ?? {}
    t.match(options, {
      origin: { requestKey: 'key 1', callers: ['outer', 'm'] },
      deadlineAt: 1001,
    })
    first?.abort(new ServeError('CANCELLED', ''))
    t.equal(signal?.aborted, false, 'the other one still waits')
    second?.abort(new ServeError('CANCELLED', ''))
    t.equal(signal?.aborted, true)
    t.match(await got, [{ final: true, error: { reason: 'CANCELLED' } }])
  },
)
