import { ServeError } from '@tutti/errors'
import type { InferRequest } from '@tutti/tensor'
import t from 'tap'
import {
  controlInput,
  sequenceConfig,
  sequenceRequest,
  sequenceState,
} from '../testing/sequence-builders.ts'
import { CONTROLS, openSequenceRig, scalar, toValue } from '../testing/sequence-rig.ts'
import { batchRequest, floats } from '../testing/step-builders.ts'

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

await t.test('a model is told where each request stands, and of places without one', async (t) => {
  const rig = openSequenceRig({ control_input: CONTROLS })
  rig.submit('a', sequenceRequest({ id: 7n, start: true }))
  rig.model.executions[0]?.end()
  await settle()
  rig.submit('b', sequenceRequest({ id: 8n, start: true, end: true }))
  rig.submit('c', sequenceRequest({ id: 9n, start: true }))
  rig.submit('d', sequenceRequest({ id: 7n, end: true }))
  rig.model.executions[1]?.end()
  await settle()
  t.same(rig.controls(), [
    ['1 1.0 false 7'],
    // Its place is the second one: the sequence of the first is idle.
    ['0 0.0 false 0', '1 1.0 true 8'],
    ['0 1.0 true 7', '1 1.0 false 9'],
  ])
  t.match(rig.model.executions[1]?.requests[0]?.inputs[0], { name: 'x', shape: [1, 4] })
  t.equal(rig.scheduler.load.inFlight, 2)
})

await t.test(
  'what is answered at a place goes to its request, and a caller that left is named by it',
  async (t) => {
    const rig = openSequenceRig({ control_input: CONTROLS })
    rig.submit('a', sequenceRequest({ id: 7n, start: true }))
    rig.model.executions[0]?.end()
    await settle()
    const second = rig.submit('b', sequenceRequest({ id: 8n, start: true }))
    rig.model.executions[1]?.send(0, { outputs: [floats('y', [1, 4])] })
    rig.model.executions[1]?.send(1, { outputs: [floats('y', [1, 4])] })
    rig.model.executions[1]?.end()
    await second.done
    t.equal(second.outcome, 'OK')
    const third = rig.submit('c', sequenceRequest({ id: 8n }))
    third.cancel()
    t.same(rig.model.executions[2]?.abandoned, [1])
    t.equal(rig.model.executions[2]?.signal.aborted, true)
    // A running request that was given up does not end its sequence, as in Triton.
    rig.submit('d', sequenceRequest({ id: 8n }))
    rig.model.executions[2]?.end()
    await settle()
    t.equal(rig.model.executions.length, 4)
  },
)

await t.test('requests that do not fit are refused with the texts of Triton', async (t) => {
  const rig = openSequenceRig({ control_input: CONTROLS })
  const cases: readonly (readonly [InferRequest, string, string])[] = [
    [
      batchRequest({ batch: 2, correlationId: 1n, sequenceStart: true }),
      'INVALID_REQUEST',
      "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher",
    ],
    [
      batchRequest({ sequenceStart: true }),
      'INVALID_REQUEST',
      "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
    ],
    [
      sequenceRequest({ id: '', start: true }),
      'INVALID_REQUEST',
      "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
    ],
    [
      sequenceRequest({ id: 'text', start: true }),
      'DATATYPE_MISMATCH',
      "[request id: <id_unknown>] sequence batching control 'CORRID' data-type is 'BYTES', but model 'm' expects 'UINT64'",
    ],
  ]
  for (const [request, reason, message] of cases) {
    const error = t.throws(() => rig.check(request))
    t.match(error, { code: 'INVALID_ARGUMENT', reason, message })
  }
  const late = rig.submit('a', sequenceRequest({ id: 5n }))
  t.equal(
    late.outcome,
    "INVALID_ARGUMENT SEQUENCE_NOT_STARTED inference request for sequence 5 to model 'm' must specify the START flag on the first request of the sequence",
  )
  t.equal(rig.scheduler.load.inFlight, 0)
})

await t.test('a correlation id may be text', async (t) => {
  const corrid = controlInput('CORRID', 'CORRID', { data_type: 'TYPE_STRING' })
  const rig = openSequenceRig({ control_input: [corrid] })
  rig.submit('a', sequenceRequest({ id: 'call-1', start: true }))
  t.same(rig.controls(), [['call-1']])
  const error = t.throws(() => rig.check(sequenceRequest({ id: 4n, start: true })))
  t.match(error, { message: /data-type is 'UINT64', but model 'm' expects 'BYTES'/ })
})

await t.test('a request that is given up while it waits ends its sequence', async (t) => {
  const rig = openSequenceRig({}, { max_batch_size: 1 })
  rig.submit('a', sequenceRequest({ id: 1n, start: true }))
  const b = rig.submit('b', sequenceRequest({ id: 1n }))
  const c = rig.submit('c', sequenceRequest({ id: 1n }))
  b.cancel()
  t.equal(b.outcome, 'CANCELLED CANCELLED')
  t.match(c.outcome, /^CANCELLED CANCELLED sequence 1 ended early: an earlier request/)
  const d = rig.submit('d', sequenceRequest({ id: 1n }))
  t.match(d.outcome, /SEQUENCE_NOT_STARTED/)
  rig.model.executions[0]?.end()
  await settle()
  t.equal(rig.model.executions.length, 1)
})

await t.test('a request that is late ends its sequence', async (t) => {
  const rig = openSequenceRig({}, { max_batch_size: 1 })
  rig.submit('a', sequenceRequest({ id: 1n, start: true }))
  const late = rig.scheduler
  const sink = { send: () => {}, fail: (error: ServeError) => failures.push(error.reason) }
  const failures: string[] = []
  const { signal } = new AbortController()
  late.execute(rig.check(sequenceRequest({ id: 1n })), sink, { signal, deadlineAt: 5 })
  const c = rig.submit('c', sequenceRequest({ id: 1n }))
  rig.clock.advance(5)
  t.same(failures, ['DEADLINE_EXCEEDED'])
  t.match(c.outcome, /ended early/)
})

await t.test('sequences without a slot wait, for as long as their requests allow', async (t) => {
  const rig = openSequenceRig({}, { max_batch_size: 1 })
  const a = rig.submit('a', sequenceRequest({ id: 1n, start: true, end: true }))
  const b = rig.submit('b', sequenceRequest({ id: 2n, start: true }))
  const c = rig.submit('c', sequenceRequest({ id: 3n, start: true, timeoutUs: 2000n }))
  const d = rig.submit('d', sequenceRequest({ id: 3n }))
  rig.clock.advance(2)
  for (const one of [c, d]) {
    t.equal(
      one.outcome,
      'UNAVAILABLE QUEUE_TIMEOUT timeout of the corresponding sequence has been expired',
    )
  }
  rig.model.executions[0]?.send(0, {})
  rig.model.executions[0]?.end()
  await a.done
  t.equal(rig.model.executions.length, 2)
  rig.model.executions[1]?.send(0, {})
  rig.model.executions[1]?.end()
  await b.done
})

await t.test('an idle sequence gives its slot away', async (t) => {
  const rig = openSequenceRig({ max_sequence_idle_microseconds: 5000 }, { max_batch_size: 1 })
  rig.submit('a', sequenceRequest({ id: 1n, start: true }))
  rig.clock.advance(60)
  t.equal(rig.model.executions.length, 1, 'it is not idle while it executes')
  rig.submit('b', sequenceRequest({ id: 2n, start: true }))
  rig.model.executions[0]?.end()
  await settle()
  rig.clock.advance(4)
  t.equal(rig.model.executions.length, 1)
  rig.clock.advance(1)
  t.equal(rig.model.executions.length, 2)
  t.match(rig.submit('c', sequenceRequest({ id: 1n })).outcome, /must specify the START flag/)
})

await t.test('an instance that stops takes its sequences with it, and no other', async (t) => {
  const rig = openSequenceRig({}, { max_batch_size: 1 }, { instances: 2 })
  const a = rig.submit('a', sequenceRequest({ id: 1n, start: true }))
  rig.submit('b', sequenceRequest({ id: 2n, start: true }))
  const waiting = rig.submit('c', sequenceRequest({ id: 1n }))
  rig.model.executions[0]?.send(0, { error: new ServeError('ENGINE_STOPPED', 'it crashed') })
  rig.model.executions[0]?.end()
  await a.done
  await settle()
  t.match(waiting.outcome, /^UNAVAILABLE ENGINE_STOPPED sequence 1 ended early: the instance/)
  t.match(rig.submit('d', sequenceRequest({ id: 1n })).outcome, /must specify the START flag/)
  rig.model.executions[1]?.end()
  await settle()
  rig.submit('e', sequenceRequest({ id: 2n }))
  t.equal(rig.model.executions.length, 3)
})

await t.test("a model's own error does not end a sequence", async (t) => {
  const rig = openSequenceRig()
  const a = rig.submit('a', sequenceRequest({ id: 1n, start: true }))
  rig.model.executions[0]?.send(0, { error: new ServeError('ENGINE_FAILED', 'ValueError') })
  rig.model.executions[0]?.end()
  await a.done
  await settle()
  rig.submit('b', sequenceRequest({ id: 1n }))
  t.equal(rig.model.executions.length, 2)
})

/** The state that each execution began with, of its request at a place. */
const stateBefore = (rig: ReturnType<typeof openSequenceRig>, place = 0) =>
  rig.model.executions.map(({ requests }) =>
    requests[place]?.inputs.filter(({ name }) => name === 'before').flatMap(toValue),
  )

await t.test('a state goes from one request of a sequence to the next', async (t) => {
  const rig = openSequenceRig({ state: [sequenceState()] }, {}, { initial: scalar('before', 3) })
  const steps: readonly (readonly [InferRequest, number])[] = [
    [sequenceRequest({ id: 1n, start: true }), 10],
    [sequenceRequest({ id: 1n }), 20],
    [sequenceRequest({ id: 1n, start: true }), 30],
    [sequenceRequest({ id: 1n, end: true }), 40],
    [sequenceRequest({ id: 1n, start: true, end: true }), 50],
  ]
  for (const [i, [request, after]] of steps.entries()) {
    const one = rig.submit(String(i), request)
    rig.model.executions[i]?.send(0, { outputs: [floats('y', [1, 4]), scalar('after', after)] })
    rig.model.executions[i]?.end()
    await one.done
    t.equal(one.outcome, 'OK')
    t.same(
      one.outputs.map(({ name }) => name),
      ['y'],
      'the client does not see it',
    )
  }
  t.same(stateBefore(rig), [['3.0'], ['10.0'], ['3.0'], ['30.0'], ['3.0']])
})

await t.test('a failed request leaves the state as it was', async (t) => {
  const rig = openSequenceRig({ state: [sequenceState()] })
  for (const [i, error] of [
    undefined,
    new ServeError('ENGINE_FAILED', 'no'),
    undefined,
  ].entries()) {
    const one = rig.submit(String(i), sequenceRequest({ id: 1n, start: i === 0 }))
    const outputs = [floats('y', [1, 4]), scalar('after', i + 1)]
    rig.model.executions[i]?.send(0, error === undefined ? { outputs } : { error })
    rig.model.executions[i]?.end()
    await one.done
  }
  t.same(stateBefore(rig), [['0.0'], ['1.0'], ['1.0']])
})

await t.test('a state that is an output too goes to clients that ask for it', async (t) => {
  const { output } = sequenceConfig()
  const after = output.map((y) => ({ ...y, name: 'after', dims: [1] }))
  const rig = openSequenceRig({ state: [sequenceState()] }, { output: [...output, ...after] })
  const asked = async (i: number, requestedOutputs: readonly string[]) => {
    const one = rig.submit('a', {
      ...sequenceRequest({ id: 1n, start: i === 0 }),
      requestedOutputs,
    })
    t.same(
      rig.model.executions[i]?.requests[0]?.requestedOutputs,
      requestedOutputs.length === 0 ? [] : [...new Set([...requestedOutputs, 'after'])],
    )
    rig.model.executions[i]?.send(0, { outputs: [floats('y', [1, 4]), scalar('after', 1)] })
    rig.model.executions[i]?.end()
    await one.done
    return one.outputs.map(({ name }) => name)
  }
  t.same(await asked(0, []), ['y', 'after'])
  t.same(await asked(1, ['y']), ['y'])
  t.same(await asked(2, ['after']), ['after'])
})

await t.test('sequences that are let go leave nothing behind', async (t) => {
  const rig = openSequenceRig({ control_input: CONTROLS })
  const waiting = ['a', 'b', 'c'].map((name) =>
    rig.submit(name, sequenceRequest({ id: 1n, start: name === 'a' })),
  )
  rig.scheduler.stop()
  t.same(
    waiting.map((one) => one.outcome.split(' ')[1]),
    ['ENGINE_STOPPED', 'SERVER_STOPPING', 'SERVER_STOPPING'],
  )
  t.equal(rig.scheduler.load.inFlight, 0)
  t.equal(rig.scheduler.load.queued, 0)
})
