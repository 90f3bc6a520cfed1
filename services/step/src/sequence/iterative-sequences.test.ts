import { ServeError } from '@tutti/errors'
import t from 'tap'
import { sequenceConfig, sequenceRequest, sequenceState } from '../testing/sequence-builders.ts'
import { CONTROLS, openSequenceRig, scalar, toValue } from '../testing/sequence-rig.ts'
import { batchRequest, floats, RecordingSink } from '../testing/step-builders.ts'
import { compileSequences } from './build-sequences.ts'

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

await t.test('a request of an iterative sequence executes until its model has done', async (t) => {
  const rig = openSequenceRig(
    { iterative_sequence: true, control_input: CONTROLS, state: [sequenceState()] },
    { model_transaction_policy: { decoupled: true }, max_batch_size: 2 },
    { initial: scalar('before', 3) },
  )
  const a = rig.submit('a', batchRequest({ id: 'a' }))
  const b = rig.submit('b', sequenceRequest({ id: 77n, start: true, end: true }))
  for (const [i, after] of [10, 20, 30].entries()) {
    const execution = rig.model.at(i)
    for (const place of execution.requests.keys()) {
      const outputs = [floats('y', [1, i + 1]), scalar('after', after)]
      execution.send(place, { outputs, final: i === 2 })
      if (i < 2) execution.again(place)
    }
    execution.end()
    await settle()
  }
  t.same(rig.controls(), [
    ['1 1.0 false 1 3.0'],
    ['0 1.0 false 1 10.0', '1 1.0 true 77 3.0'],
    ['0 1.0 false 1 20.0', '0 1.0 false 77 20.0'],
  ])
  t.same([a.outcome, b.outcome], ['OK', 'OK'])
  t.same(
    a.sink.responses.map(({ index, final }) => [index, final]),
    [
      [0, false],
      [1, false],
      [2, true],
    ],
    'its responses are numbered over all executions',
  )
  const { success, executionCount } = rig.statistics.snapshot()
  t.same([success.count, executionCount], [5n, 3n], 'each execution counts as a request')
  t.same([rig.statistics.pending, rig.scheduler.load.inFlight, rig.clock.pending], [0, 0, 0])
  t.match(rig.submit('c', sequenceRequest({ id: 77n })).outcome, /SEQUENCE_NOT_STARTED/)
})

await t.test(
  'an iterative sequence ends however its request ends, and gives its slot back',
  async (t) => {
    type Rig = ReturnType<typeof openSequenceRig>
    const crash = new ServeError('ENGINE_STOPPED', 'it crashed')
    const ends: readonly (readonly [string, (rig: Rig, cancel: () => void) => void])[] = [
      ['CANCELLED CANCELLED', (_, cancel) => cancel()],
      ['DEADLINE_EXCEEDED DEADLINE_EXCEEDED', ({ clock }) => clock.advance(50)],
      [
        'INTERNAL ENGINE_FAILED',
        ({ model }) => model.at(1).send(0, { error: new ServeError('ENGINE_FAILED', 'no') }),
      ],
      ['UNAVAILABLE ENGINE_STOPPED', ({ model }) => model.at(1).send(0, { error: crash })],
    ]
    for (const [outcome, end] of ends) {
      for (const isWaiting of [true, false]) {
        if (isWaiting && outcome.includes('ENGINE')) continue
        const rig = openSequenceRig({ iterative_sequence: true }, { max_batch_size: 1 })
        const a = rig.submit('a', batchRequest({ id: 'a' }), { deadlineAt: 50 })
        const b = rig.submit('b', batchRequest({ id: 'b' }))
        rig.model.at(0).again(0)
        if (!isWaiting) {
          rig.model.at(0).end()
          await settle()
          t.equal(rig.model.at(1).requests[0]?.context.id, 'a', 'it keeps its slot')
        }
        end(rig, a.cancel)
        // The model does not know that nobody waits.
        if (!isWaiting) rig.model.at(1).again(0)
        rig.model.executions.at(-1)?.end()
        await settle()
        t.match(a.outcome, new RegExp(`^${outcome}`))
        t.equal(a.sink.responses.length, 1)
        t.equal(rig.model.executions.at(-1)?.requests[0]?.context.id, 'b')
        t.equal(b.outcome, '')
      }
    }
  },
)

await t.test(
  'a request that has executed is not tried elsewhere when its server stops',
  async (t) => {
    const rig = openSequenceRig({ iterative_sequence: true }, { max_batch_size: 1 })
    const [a, b] = [rig.submit('a', batchRequest()), rig.submit('b', batchRequest())]
    rig.model.at(0).again(0)
    const drained = rig.scheduler.drain()
    rig.model.at(0).end()
    await settle()
    t.equal(rig.model.executions.length, 2, 'a server that drains goes on with it')
    rig.model.at(1).again(0)
    rig.scheduler.stop()
    t.match([a.outcome, b.outcome], [/^UNAVAILABLE ENGINE_STOPPED/, /^UNAVAILABLE SERVER_STOPPING/])
    rig.model.at(1).end()
    await drained
  },
)

await t.test('a reader far behind an iterative sequence ends it', async (t) => {
  const rig = openSequenceRig(
    { iterative_sequence: true },
    { model_transaction_policy: { decoupled: true }, max_batch_size: 1 },
  )
  const sink = new RecordingSink()
  const never = new Promise<void>(() => {})
  const slow = { send: sink.send.bind(sink), fail: sink.fail.bind(sink), ready: () => never }
  const { signal } = new AbortController()
  rig.scheduler.execute(rig.check(batchRequest({ id: 'a' })), slow, { signal })
  for (let i = 0; sink.outcome === '' && i < 2000; i += 1) {
    const execution = rig.model.at(-1)
    execution.send(0, { final: false })
    execution.again(0)
    execution.end()
    await settle()
  }
  t.match(sink.outcome, /^RESOURCE_EXHAUSTED/)
  t.equal(sink.responses.length, 1024 + 1)
  t.same([rig.scheduler.load.inFlight, rig.scheduler.load.queued], [0, 0])
})

await t.test('warm-up is a sequence without a correlation id', async (t) => {
  const config = sequenceConfig({ control_input: CONTROLS })
  const { warmUpCheck } = compileSequences(config, new Map())
  const { context, inputs } = warmUpCheck(batchRequest({ id: '' }))
  t.match(context, { correlationId: 0n, sequenceStart: true, sequenceEnd: true })
  t.same(inputs.flatMap(toValue), ['1', '1.0', 'true', '0'])
})
