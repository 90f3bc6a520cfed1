import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { toHeaders } from '@tutti/rest'
import { observeModel, type ResolvedModel } from '@tutti/serving'
import { ScriptedBackend } from '@tutti/serving/testing'
import {
  observeRequest,
  RequestCaptures,
  type StepSpan,
  type WantedRequest,
  withoutInner,
} from '@tutti/telemetry'
import type { ExecuteOptions, RequestObserver, ResponseSink } from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import { array, assert, constant, double, nat, oneof, property, record, string } from 'fast-check'
import t from 'tap'

const CONTEXT = {
  id: '',
  correlationId: 0n,
  sequenceStart: false,
  sequenceEnd: false,
  priority: 0n,
  timeoutUs: 0n,
  parameters: new Map(),
}
const FINAL = { index: 0, final: true, parameters: new Map(), outputs: [] }
const FAILURE = new ServeError('ENGINE_FAILED', 'the picture of Mr. X cannot be read')

interface Call {
  readonly id?: string
  readonly traceparent?: string
  readonly outer?: RequestObserver
}

/** Captures over models whose requests end when a test says so. */
function setup() {
  const clock = createManualClock()
  const captures = new RequestCaptures(clock)
  const backend = new ScriptedBackend({ m: {}, other: {} })
  /** Begins a request. */
  const call = (name: string, o: Call = {}) => {
    let started: { sink: ResponseSink; options: ExecuteOptions } | undefined
    const model: ResolvedModel = {
      ...backend.resolve(name),
      execute: (_request, sink, options) => {
        started = { sink, options }
      },
    }
    const observed = observeModel(model, captures, { clock })
    const answer = new RecordedResponses()
    const request = { context: { ...CONTEXT, id: o.id ?? '' }, inputs: [], requestedOutputs: [] }
    observed.execute(request, answer, {
      signal: new AbortController().signal,
      ...(o.traceparent && { trace: { traceparent: o.traceparent } }),
      ...(o.outer && { observer: o.outer }),
    })
    if (started === undefined) throw new Error('nothing was executed')
    const { sink, options } = started
    const begin = (step: string, to: ResponseSink, observer = options.observer) => {
      const called = { name: `model of ${step}`, version: 1, isEnsemble: false, step }
      const { signal } = options
      const begins = { model: called, request, sink: to, options: { signal, observer: undefined } }
      const nobody = { began: () => undefined }
      const [observedSink, inner] = observeRequest(observer ?? nobody, clock, begins)
      return [observedSink, inner.observer] as const
    }
    return { sink, options, begin, answer, isRecorded: options.observer !== o.outer }
  }
  const wait = (wanted: Omit<WantedRequest, 'model'> = {}, page = 'p', turn = '1') =>
    captures.wait(page, turn, { model: 'm', ...wanted })
  return { clock, captures, call, wait }
}

await t.test('nothing is recorded while no page waits for the model', async (t) => {
  const { captures, call, wait } = setup()
  t.notOk(captures.isWaiting)
  wait()
  t.ok(captures.isWaiting)
  const other = call('other')
  t.notOk(other.isRecorded)
  t.equal(other.options.observer, undefined)
  const own = call('m')
  t.ok(own.isRecorded)
  own.sink.send(FINAL)
  t.match(own.answer.responses, [{ final: true }], 'its caller has the answer')
  t.notOk(captures.isWaiting, 'one was caught')
  t.notOk(call('m').isRecorded)
  t.match(wait(), { seen: 1, caught: { reason: '' } }, 'and stays')
})

await t.test('a page gets the request that it wants', async (t) => {
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const cases: readonly (readonly [Omit<WantedRequest, 'model'>, string])[] = [
    [{}, 'fast'],
    [{ isFailed: true }, 'failed'],
    [{ slowerThanMs: 50 }, 'slow'],
    [{ slowerThanMs: 50, isFailed: true }, ''],
    [{ id: 'failed' }, 'failed'],
    [{ id: trace }, 'slow'],
    [{ id: 'none' }, ''],
  ]
  for (const [wanted, id] of cases) {
    const { clock, call, wait } = setup()
    wait(wanted)
    call('m', { id: 'fast' }).sink.send(FINAL)
    const slow = call('m', { id: 'slow', traceparent: `00-${trace}-b7ad6b7169203331-01` })
    const failed = call('m', { id: 'failed' })
    clock.advance(20)
    failed.sink.fail(FAILURE, 'maybe')
    clock.advance(30)
    slow.sink.send(FINAL)
    const { caught, seen } = wait(wanted)
    t.equal(caught?.id ?? '', id, JSON.stringify(wanted))
    if (id === '') t.equal(seen, 3)
    if (id === 'slow') t.match(caught, { elapsedMs: 50, traceId: trace, reason: '' })
    if (id === 'failed') t.match(caught, { elapsedMs: 20, traceId: '', reason: 'ENGINE_FAILED' })
    t.notMatch(JSON.stringify(caught ?? {}), /Mr\. X/, 'the error may quote the request')
  }
})

function read({ step, depth, startMs, endMs, reason }: StepSpan) {
  return [step, depth, startMs, endMs, reason]
}

await t.test('it says when the steps ran and which one failed', async (t) => {
  const { clock, call, wait } = setup()
  wait({ isFailed: true })
  const { sink, begin } = call('m')
  clock.advance(1)
  const [first, inner] = begin('a', new RecordedResponses())
  const [nested] = begin('', new RecordedResponses(), inner)
  clock.advance(2)
  nested.send(FINAL)
  const ns = 1e6
  const times = { computeInputNs: 0, computeInferNs: ns, computeOutputNs: 0, transferNs: 0 }
  first.send({ ...FINAL, times: { queueNs: ns / 2, ...times } })
  const [second] = begin('b', new RecordedResponses())
  begin('c', new RecordedResponses())
  clock.advance(4)
  second.fail(FAILURE, 'maybe')
  sink.fail(FAILURE, 'maybe')
  clock.advance(100)
  begin('late', new RecordedResponses())
  const { caught } = wait({ isFailed: true })
  const all = [
    ['', 0, 0, 7, 'ENGINE_FAILED'],
    ['a', 1, 1, 3, ''],
    ['', 2, 1, 3, ''],
    ['b', 1, 3, 7, 'ENGINE_FAILED'],
    ['c', 1, 3, 7, ''],
  ]
  t.same(caught?.spans.map(read), all)
  t.match(caught?.spans[1], { queueMs: 0.5, computeMs: 1, model: 'model of a' })
  const shown = caught && withoutInner(caught)
  t.same(
    shown?.spans.map(read),
    all.filter(([, depth]) => depth !== 2),
  )
})

await t.test('a request that is traced into a file has both', async (t) => {
  const begun: string[] = []
  const outer: RequestObserver = {
    began: ({ name }) => {
      begun.push(name)
      return { steps: outer }
    },
  }
  const { call, wait } = setup()
  wait()
  const { sink, begin } = call('m', { outer })
  const [, inner] = begin('a', new RecordedResponses())
  begin('b', new RecordedResponses(), inner)
  sink.send(FINAL)
  t.same(begun, ['model of a', 'model of b'])
  t.equal(wait().caught?.spans.length, 3)
})

await t.test('each page waits for itself, and for one request at a time', async (t) => {
  const { call, captures, wait } = setup()
  wait({}, 'p')
  wait({ isFailed: true }, 'q')
  call('m').sink.send(FINAL)
  t.equal(wait({}, 'p').caught?.reason, '')
  t.equal(wait({ isFailed: true }, 'q').caught, undefined)
  t.equal(wait({ isFailed: true }, 'p', '2').caught, undefined, 'it waits anew')
  captures.stop('p', '1')
  call('m').sink.fail(FAILURE, 'no')
  t.equal(wait({ isFailed: true }, 'p', '2').caught?.reason, 'ENGINE_FAILED')
  t.equal(wait({ isFailed: true }, 'q').caught?.reason, 'ENGINE_FAILED')
  wait({}, 'p', '3')
  captures.stop('p', '3')
  t.notOk(captures.isWaiting)
})

await t.test('a page gets no request that began before it waited', async (t) => {
  const { call, wait } = setup()
  wait({ isFailed: true }, 'p')
  const { sink } = call('m')
  wait({}, 'q')
  sink.fail(FAILURE, 'no')
  t.equal(wait({ isFailed: true }, 'p').caught?.reason, 'ENGINE_FAILED')
  t.match(wait({}, 'q'), { seen: 0, caught: undefined })
  call('m').sink.send(FINAL)
  t.match(wait({}, 'q'), { seen: 1, caught: { reason: '' } })
})

await t.test('a page that is gone is forgotten', async (t) => {
  const { clock, call, captures, wait } = setup()
  wait()
  clock.advance(300_001)
  t.notOk(call('m').isRecorded)
  t.notOk(captures.isWaiting)
})

await t.test('there is room for 16 pages that ask, and idle ones give way', async (t) => {
  const { clock, wait } = setup()
  for (let i = 0; i < 16; i++) wait({}, `p${i}`)
  t.throws(() => wait({}, 'more'), { message: /^16 pages wait/ })
  clock.advance(10_001)
  wait({}, 'p3')
  wait({}, 'more')
  t.equal(wait({}, 'p3').seen, 0)
})

await t.test('all that is recorded at a time is bounded, and given back', async (t) => {
  const { call, wait } = setup()
  wait({ id: 'last' })
  const open = (id: string): ReturnType<typeof call> => {
    const one = call('m', { id })
    for (let i = 0; i < 600; i++) one.begin(`s${i}`, new RecordedResponses())
    return one
  }
  const many = Array.from({ length: 59 }, () => open('earlier'))
  open('last').sink.send(FINAL)
  t.match(wait({ id: 'last' }).caught, { spans: { length: 1 }, leftOut: 600 })
  for (const { sink } of many) sink.send(FINAL)
  wait({ id: 'last' }, 'p', '2')
  open('last').sink.send(FINAL)
  t.match(wait({ id: 'last' }, 'p', '2').caught, { spans: { length: 500 }, leftOut: 101 })
})

await t.test('the header of an answer holds what browsers take, whatever names say', async (t) => {
  const span = record({
    step: string({ unit: 'binary', maxLength: 4096 }),
    model: oneof(string({ unit: 'grapheme' }), constant('m'.repeat(4096))),
    depth: nat(9),
    startMs: double({ min: 0, max: 1e6, noNaN: true }),
    endMs: double({ min: 0, max: 1e6, noNaN: true }),
    queueMs: constant(0),
    computeMs: constant(0),
    reason: constant(''),
    waitsFor: constant([]),
  })
  const holds = property(array(span, { maxLength: 60 }), nat(3), (spans, leftOut) => {
    const headers = toHeaders({ spans, leftOut })
    const text = headers.get('tutti-steps') ?? ''
    const parsed: unknown[] = JSON.parse(text)
    return (
      text.length <= 128 * 1024 &&
      /^[\x20-\x7e]*$/.test(text) &&
      JSON.stringify(parsed) === JSON.stringify(spans.slice(0, parsed.length)) &&
      Number(headers.get('tutti-steps-left-out') ?? 0) === leftOut + spans.length - parsed.length
    )
  })
  t.doesNotThrow(() => assert(holds, { numRuns: 50 }))
})
