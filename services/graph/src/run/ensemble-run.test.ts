import { ServeError } from '@tutti/errors'
import type { Parameter } from '@tutti/tensor'
import { requestContext } from '@tutti/tensor/testing'
import t from 'tap'
import { ensemblePlan, stepConfig } from '../testing/configs.ts'
import { EnsembleDriver } from '../testing/ensemble-driver.ts'
import { createEnsembleRun } from './graph-run.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')

const CHAIN = ensemblePlan({ input: ['x'], output: ['y'] }, [
  stepConfig('first', { a: 'x' }, { b: 'mid' }),
  stepConfig('second', { a: 'mid' }, { b: 'y' }),
])
const DIAMOND = ensemblePlan({ input: ['x'], output: ['y'] }, [
  stepConfig('left', { a: 'x' }, { b: 'l' }),
  stepConfig('right', { a: 'x' }, { b: 'r' }),
  stepConfig('join', { a: 'l', c: 'r' }, { b: 'y' }),
])
const STREAM = ensemblePlan(
  { input: ['x'], output: ['y'] },
  [stepConfig('source', { a: 'x' }, { b: 'mid' }), stepConfig('sink', { a: 'mid' }, { b: 'y' })],
  ['source'],
)

await t.test('branches run together and the join waits for both', async (t) => {
  const driver = new EnsembleDriver(DIAMOND)
  driver.start({ x: 'X' })
  t.same(driver.running, ['left', 'right'])
  driver.respond(driver.of('right'), { b: 'R' })
  t.same(driver.running, ['left'])
  driver.respond(driver.of('left'), { b: 'L' })
  t.same(driver.read(driver.of('join')), { a: 'L', c: 'R' })
  driver.respond(driver.of('join'), { b: 'Y' })
  t.match(driver.emitted, [{ outputs: { y: 'Y' }, action: { index: 0, final: true } }])
  t.equal(driver.held, 0)
})

await t.test('a tensor is let go as soon as its last reader has ended', async (t) => {
  const driver = new EnsembleDriver(DIAMOND)
  driver.start({ x: 'X' })
  t.equal(driver.held, 1)
  t.notMatch(driver.respond(driver.of('left'), { b: 'L' }), [{ type: 'ReleaseTensor' }])
  t.match(driver.respond(driver.of('right'), { b: 'R' }), [
    { type: 'InvokeStep', requestedOutputs: ['b'] },
    { type: 'ReleaseTensor', ref: 1 },
  ])
})

await t.test('steps that only unrequested outputs need do not run', async (t) => {
  const graph = ensemblePlan({ input: ['x'], output: ['y', 'z', 'mid'] }, [
    stepConfig('first', { a: 'x' }, { b: 'mid', extra: 'e' }),
    stepConfig('second', { a: 'mid' }, { b: 'y' }),
    stepConfig('third', { a: 'e' }, { b: 'z' }),
  ])
  const driver = new EnsembleDriver(graph, { requestedOutputs: ['mid'] })
  driver.start({ x: 'X' })
  const actions = driver.respond(driver.of('first'), { b: 'M', extra: 'E' })
  t.same(driver.running, [])
  t.same(driver.emitted[0]?.outputs, { mid: 'M' })
  t.match(actions[0], { type: 'ReleaseTensor' }, 'an output that no step needs goes at once')
  t.equal(driver.held, 0)
})

await t.test('a requested output that is none is refused', async (t) => {
  const o = { context: requestContext(), requestedOutputs: ['y', 'nope'] }
  t.throws(() => createEnsembleRun(CHAIN, o), {
    reason: 'INVALID_REQUEST',
    message: "unexpected inference output 'nope' for model 'E'",
  })
})

await t.test('an output goes when it is emitted, unless steps still read it', async (t) => {
  const graph = ensemblePlan(
    { input: ['x'], output: ['s'] },
    [stepConfig('source', { a: 'x' }, { b: 's' })],
    ['source'],
  )
  const both = ensemblePlan(
    { input: ['x'], output: ['s', 'y'] },
    [stepConfig('source', { a: 'x' }, { b: 's' }), stepConfig('sink', { a: 's' }, { b: 'y' })],
    ['source'],
  )
  const alone = new EnsembleDriver(graph)
  alone.start({ x: 'X' })
  const last = alone.respond(alone.of('source'), { b: 'S' }, { final: false })
  t.match(last, [{ type: 'Emit', final: false }, { type: 'ReleaseTensor' }])
  const read = new EnsembleDriver(both)
  read.start({ x: 'X' })
  read.respond(read.of('source'), { b: 'S' })
  const actions = read.respond(read.of('sink'), { b: 'Y' }, { final: false })
  t.same(
    actions.map(({ type }) => type),
    ['Emit', 'ReleaseTensor'],
    'only what the last step gave: it still reads the other',
  )
  read.respond(read.of('sink'), {}, { index: 1 })
  t.equal(read.held, 0)
})

await t.test('an omitted or withheld output is left out of the following steps', async (t) => {
  const graph = ensemblePlan({ input: ['x', 'o?'], output: ['y', 'z'] }, [
    stepConfig('m', { a: 'x', c: 'o?' }, { b: 'mid', d: 'z' }),
    stepConfig('n', { a: 'mid', c: 'x' }, { b: 'y' }),
  ])
  const driver = new EnsembleDriver(graph)
  driver.start({ x: 'X' })
  t.same(driver.read(driver.of('m')), { a: 'X' })
  driver.respond(driver.of('m'), { d: 'Z' })
  t.same(driver.read(driver.of('n')), { c: 'X' })
  driver.respond(driver.of('n'), {})
  t.same(driver.emitted[0]?.outputs, { z: 'Z' }, 'a null output is skipped')
})

await t.test('a response tensor that no map names is let go', async (t) => {
  const driver = new EnsembleDriver(CHAIN)
  driver.start({ x: 'X' })
  driver.respond(driver.of('first'), { b: 'M', stray: 'S' })
  driver.respond(driver.of('second'), { b: 'Y' })
  t.equal(driver.held, 0)
})

await t.test('an input that is also an output is passed through', async (t) => {
  const graph = ensemblePlan({ input: ['x'], output: ['x', 'y'] }, [
    stepConfig('m', { a: 'x' }, { b: 'y' }),
  ])
  const all = new EnsembleDriver(graph)
  all.start({ x: 'X' })
  all.respond(all.of('m'), { b: 'Y' })
  t.same(all.emitted[0]?.outputs, { x: 'X', y: 'Y' })
  const passed = new EnsembleDriver(graph, { requestedOutputs: ['x'] })
  passed.start({ x: 'X' })
  t.match(passed.emitted, [{ outputs: { x: 'X' }, action: { final: true } }])
  t.equal(passed.emitted[0]?.action.parameters.size, 0, 'no step made it')
})

await t.test(
  'where a step writes onto an input, steps read the request and the client the step',
  async (t) => {
    const graph = ensemblePlan({ input: ['x'], output: ['x', 'y'] }, [
      stepConfig('update', { a: 'x' }, { b: 'x' }),
      stepConfig('m', { a: 'x' }, { b: 'y' }),
    ])
    const driver = new EnsembleDriver(graph)
    driver.start({ x: 'X' })
    t.same(driver.running, ['update', 'm'])
    driver.respond(driver.of('update'), { b: 'NEW' })
    t.same(driver.read(driver.of('m')), { a: 'X' })
    driver.respond(driver.of('m'), { b: 'Y' })
    t.same(driver.emitted[0]?.outputs, { x: 'NEW', y: 'Y' })
    t.equal(driver.held, 0)
  },
)

await t.test('the first failure ends the run and cancels what is in flight', async (t) => {
  const driver = new EnsembleDriver(DIAMOND)
  driver.start({ x: 'X' })
  const right = driver.of('right')
  const actions = driver.fail(driver.of('left'), BROKEN)
  t.same(
    actions.map((action) => action.type),
    ['CancelSteps', 'ReleaseTensor', 'Fail'],
  )
  t.match(driver.failure?.error, {
    code: 'INTERNAL',
    reason: 'ENGINE_FAILED',
    message: "in ensemble 'E', it broke",
    details: { ensemble: 'E', step: 'left', model: 'left', attempt: '1' },
  })
  t.match(driver.respond(right, { b: 'late' }), [{ type: 'ReleaseTensor' }])
  t.same(driver.send({ type: 'Cancelled', error: BROKEN }), [])
  t.equal(driver.held, 0)
})

await t.test(
  'the innermost place of a nested failure is kept, and each level adds its prefix',
  async (t) => {
    const driver = new EnsembleDriver(CHAIN)
    driver.start({ x: 'X' })
    const inner = new ServeError('ENGINE_FAILED', "in ensemble 'I', it broke", {
      details: { ensemble: 'I', step: 'deep' },
    })
    driver.fail(driver.of('first'), inner)
    t.match(driver.failure?.error, {
      message: "in ensemble 'E', in ensemble 'I', it broke",
      details: { ensemble: 'I', step: 'deep', model: 'first', attempt: '1' },
    })
  },
)

await t.test(
  'the text says which step failed, and which one made what a step refuses',
  async (t) => {
    const wrong = "unexpected shape for input 'a' for model 'second'. Expected [4], got [5]"
    const table: readonly (readonly [string, ServeError, string])[] = [
      [
        'first',
        new ServeError('ENGINE_FAILED', 'onnx runtime error 2: bad'),
        "onnx runtime error 2: bad (step 'first', model 'first')",
      ],
      [
        'first',
        new ServeError('ENGINE_FAILED', 'PyTorch execute failure: bad'),
        "PyTorch execute failure: bad (step 'first', model 'first')",
      ],
      ['first', new ServeError('ENGINE_FAILED', 'the author’s own'), 'the author’s own'],
      ['first', new ServeError('STEP_LOST', 'it is gone'), "step 'first': it is gone"],
      ['first', new ServeError('STEP_LOST', "step 'first[2]': gone"), "step 'first[2]': gone"],
      [
        'second',
        new ServeError('SHAPE_MISMATCH', wrong, { details: { field: 'a' } }),
        `${wrong} (output 'b' of step 'first')`,
      ],
      [
        'first',
        new ServeError('SHAPE_MISMATCH', 'the client’s', { details: { field: 'a' } }),
        'the client’s',
      ],
    ]
    for (const [step, error, text] of table) {
      const driver = new EnsembleDriver(CHAIN)
      driver.start({ x: 'X' })
      if (step === 'second') driver.respond(driver.of('first'), { b: 'M' })
      driver.fail(driver.of(step), error)
      t.equal(driver.failure?.error.message, `in ensemble 'E', ${text}`)
    }
  },
)

await t.test('a cancelled run answers at once', async (t) => {
  const error = new ServeError('DEADLINE_EXCEEDED', 'the time is over')
  const driver = new EnsembleDriver(CHAIN)
  driver.start({ x: 'X' })
  driver.send({ type: 'Cancelled', error })
  t.same(driver.cancelled, ['first'])
  t.match(driver.failure?.error, {
    reason: 'DEADLINE_EXCEEDED',
    message: "in ensemble 'E', the time is over",
    details: { ensemble: 'E' },
  })
  const early = new EnsembleDriver(CHAIN)
  early.send({ type: 'Cancelled', error })
  early.start({ x: 'X' })
  t.same(early.running, [])
  t.equal(early.held, 0)
  t.throws(() => early.start({}), { message: 'bug: an ensemble run starts once' })
})

await t.test('a response that breaks the sequence fails the run', async (t) => {
  const lost = new EnsembleDriver(STREAM)
  lost.start({ x: 'X' })
  lost.respond(lost.of('source'), { b: 'S' }, { index: 1, final: false })
  t.match(lost.failure?.error, {
    reason: 'RESPONSE_INVALID',
    message: "in ensemble 'E', model 'source': got response 1, want response 0",
  })
  t.same(lost.cancelled, ['source'], 'it is still running')
  const twice = new EnsembleDriver(CHAIN)
  twice.start({ x: 'X' })
  const invoke = twice.of('first')
  twice.respond(invoke, { b: 'M' }, { final: false })
  twice.respond(invoke, { b: 'M' }, { index: 1 })
  t.match(twice.failure?.error, {
    reason: 'RESPONSE_INVALID',
    message:
      "in ensemble 'E', model 'first': got a second response, want one because the model is not decoupled",
  })
  t.equal(lost.held + twice.held, 0)
})

await t.test(
  'a stream fires once per response and answers in the order of the source',
  async (t) => {
    const driver = new EnsembleDriver(STREAM)
    driver.start({ x: 'X' })
    const source = driver.of('source')
    driver.respond(source, { b: 'S0' }, { final: false })
    driver.respond(source, { b: 'S1' }, { index: 1, final: false })
    t.same(driver.running, ['source', 'sink', 'sink'])
    const [, first, second] = [...driver.inFlight.values()]
    t.same([first?.execution, second?.execution], [2, 3])
    if (first === undefined || second === undefined) return
    driver.respond(second, { b: 'Y1' })
    t.equal(driver.emitted.length, 0, 'the first response comes first')
    driver.respond(first, { b: 'Y0' })
    driver.respond(source, {}, { index: 2 })
    t.same(
      driver.emitted.map(({ outputs, action }) => [outputs, action.index, action.final]),
      [
        [{ y: 'Y0' }, 0, false],
        [{ y: 'Y1' }, 1, false],
        [{}, 2, true],
      ],
    )
    t.equal(driver.held, 0)
  },
)

await t.test(
  'the last response carries the end if it can, and no response is an end too',
  async (t) => {
    const last = new EnsembleDriver(STREAM)
    last.start({ x: 'X' })
    last.respond(last.of('source'), { b: 'S0' })
    last.respond(last.of('sink'), { b: 'Y0' })
    t.match(last.emitted, [{ outputs: { y: 'Y0' }, action: { final: true } }])
    const none = new EnsembleDriver(STREAM)
    none.start({ x: 'X' })
    none.respond(none.of('source'), {})
    t.match(none.emitted, [{ outputs: {}, action: { final: true, index: 0 } }])
  },
)

await t.test('a source that runs too far ahead is failed', async (t) => {
  const driver = new EnsembleDriver(STREAM)
  driver.start({ x: 'X' })
  const source = driver.of('source')
  for (let index = 0; index < 1024; index++) {
    driver.respond(source, { b: 'S' }, { index, final: false })
  }
  t.equal(driver.failure, undefined, 'what it sent before comes first')
  for (const invoke of driver.inFlight.values()) {
    if (driver.plan.steps[invoke.step]?.name === 'sink') driver.respond(invoke, { b: 'Y' })
  }
  t.equal(driver.emitted.length, 1023)
  t.match(driver.failure?.error, {
    reason: 'OVERLOADED',
    code: 'RESOURCE_EXHAUSTED',
    message:
      "in ensemble 'E', model 'source' is ahead of the steps after it: got 1024 open iterations, want fewer",
  })
  t.equal(driver.held, 0)
})

await t.test('the request context reaches every step unchanged', async (t) => {
  const context = { id: 'r', priority: 3n, timeoutUs: 9n, correlationId: 5n, sequenceStart: true }
  const driver = new EnsembleDriver(CHAIN, { context })
  driver.start({ x: 'X' })
  t.same(driver.of('first').context, requestContext(context))
  driver.respond(driver.of('first'), { b: 'M' })
  t.same(driver.of('second').context, requestContext(context))
})

await t.test('a step may replace the sequence for the steps after it', async (t) => {
  const driver = new EnsembleDriver(CHAIN, { context: { correlationId: 5n, sequenceStart: true } })
  driver.start({ x: 'X' })
  const end: Parameter = { kind: 'bool', value: true }
  driver.respond(driver.of('first'), { b: 'M' }, { parameters: new Map([['sequence_end', end]]) })
  t.match(driver.of('second').context, {
    correlationId: 5n,
    sequenceStart: false,
    sequenceEnd: true,
  })
  driver.respond(driver.of('second'), { b: 'Y' })
  t.same(Object.fromEntries(driver.emitted[0]?.action.parameters ?? []), {
    sequence_id: { kind: 'int64', value: 5n },
    sequence_start: { kind: 'bool', value: false },
    sequence_end: { kind: 'bool', value: true },
  })
})

await t.test('a sequence parameter of the wrong kind fails the run', async (t) => {
  const flag: Parameter = { kind: 'string', value: 'yes' }
  const driver = new EnsembleDriver(CHAIN)
  driver.start({ x: 'X' })
  driver.respond(
    driver.of('first'),
    { b: 'M' },
    { parameters: new Map([['sequence_start', flag]]) },
  )
  t.match(driver.failure?.error, {
    reason: 'RESPONSE_INVALID',
    code: 'INVALID_ARGUMENT',
    message: "in ensemble 'E', expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL",
  })
  t.equal(driver.held, 0)
})

await t.test('an output of no bytes brings no sequence parameters', async (t) => {
  const driver = new EnsembleDriver(CHAIN)
  driver.start({ x: 'X' })
  driver.respond(driver.of('first'), { b: 'M' })
  driver.respond(driver.of('second'), { b: 'Y' }, { shape: [0] })
  t.equal(driver.emitted[0]?.action.parameters.size, 0)
})
