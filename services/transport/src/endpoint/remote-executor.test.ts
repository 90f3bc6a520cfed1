import { createManualClock } from '@tutti/chassis/testing'
import type { Envelope } from '@tutti/protocol'
import { EMPTY_CONTEXT, type ExecuteOptions, type InferRequest } from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import t from 'tap'
import { SERVED, tensorBytes } from '../testing/envelopes.ts'
import { RemoteExecutor, toExecuteOptions } from './remote-executor.ts'

const { signal } = new AbortController()
const request: InferRequest = {
  context: { ...EMPTY_CONTEXT, id: 'c1' },
  requestedOutputs: ['y'],
  inputs: [{ name: 'x', datatype: 'UINT8', shape: [3], data: tensorBytes(3) }],
}

/** Executes the request. @returns what is sent, and the clock. */
function send(toOptions: (now: number) => ExecuteOptions) {
  const clock = createManualClock()
  const sent: { to: string; envelope: Envelope; tensors: readonly Uint8Array[] }[] = []
  const executor = new RemoteExecutor(
    ({ to, envelope, tensors }) => void sent.push({ to, envelope, tensors }),
    'step',
    SERVED,
    clock,
  )
  executor.execute(request, new RecordedResponses(), toOptions(clock.now()))
  const [one] = sent
  if (one === undefined || sent.length !== 1) throw new Error(`${sent.length} were sent`)
  return { ...one, clock }
}

await t.test('the other side gets all that came with the request', async (t) => {
  const trace = { traceparent: '00-a-b-01', tracestate: 'k=v' }
  const origin = {
    requestKey: 'r1',
    step: 'first',
    attempt: 2,
    callers: ['a', 'b'],
    isDecoupled: true,
  } as const
  const { to, envelope, tensors, clock } = send((now) => {
    return { signal, trace, origin, deadlineAt: now + 500 }
  })
  t.equal(to, 'step')
  t.match(envelope, { ...SERVED, ...origin, ...trace, remainingMs: 500 })
  t.match(envelope, { context: { id: 'c1' }, requestedOutputs: ['y'], inputs: [{ name: 'x' }] })
  t.equal(tensors[0], request.inputs[0]?.data, 'bytes are viewed')
  clock.advance(100)
  const deadlineAt = clock.now() + 500
  t.strictSame(toExecuteOptions(envelope, { signal, clock }), { signal, trace, origin, deadlineAt })
})

await t.test('and nothing that did not', async (t) => {
  const { envelope, clock } = send(() => ({ signal }))
  for (const absent of ['remainingMs', 'callers', 'isDecoupled', 'traceparent', 'tracestate']) {
    t.notOk(absent in envelope, absent)
  }
  const origin = { requestKey: '', step: '', attempt: 1 }
  t.strictSame(toExecuteOptions(envelope, { signal, clock }), { signal, origin })
})

await t.test('time that is over is none left', async (t) => {
  t.equal(send((now) => ({ signal, deadlineAt: now - 5 })).envelope.remainingMs, 0)
})
