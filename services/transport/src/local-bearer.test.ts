import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import { EMPTY_CONTEXT, TensorMemory } from '@tutti/tensor'
import t from 'tap'
import { LocalBearer } from './local-bearer.ts'
import type { BearerResponse } from './tensor-bearer.ts'

const envelope: Envelope = {
  requestKey: 'r1',
  model: 'm',
  version: 1,
  revision: 'abc',
  step: '',
  attempt: 1,
  context: EMPTY_CONTEXT,
  requestedOutputs: [],
  inputs: [{ name: 'x', datatype: 'UINT8', shape: [3] }],
}
const quiet = { signal: new AbortController().signal }
const response = (index: number, final: boolean): BearerResponse => ({
  index,
  final,
  outputs: [],
  parameters: new Map(),
})

async function collect(stream: AsyncIterable<BearerResponse>): Promise<BearerResponse[]> {
  const all: BearerResponse[] = []
  for await (const one of stream) all.push(one)
  return all
}

await t.test(
  'the handler sees the very bytes of the sender, and every response arrives in order',
  async (t) => {
    const bearer = new LocalBearer()
    const ref = new TensorMemory('router').hold(Uint8Array.of(1, 2, 3))
    bearer.serve('a', async (got, tensors, sink) => {
      t.equal(got, envelope)
      t.equal(tensors[0]?.bytes, ref.bytes)
      sink.send(response(0, false))
      await Promise.resolve()
      sink.send(response(1, true))
      sink.send(response(2, true))
    })
    const got = await collect(bearer.call({ replica: 'a' }, envelope, [ref], quiet))
    t.same(
      got.map((r) => [r.index, r.final]),
      [
        [0, false],
        [1, true],
      ],
    )
  },
)

await t.test('an unknown or closed replica is STEP_UNAVAILABLE', async (t) => {
  const bearer = new LocalBearer()
  const stop = bearer.serve('a', async (_e, _t, sink) => sink.send(response(0, true)))
  stop()
  for (const replica of ['a', 'nobody']) {
    const error = await collect(bearer.call({ replica }, envelope, [], quiet)).catch(
      (thrown: unknown) => thrown,
    )
    t.match(error, { reason: 'STEP_UNAVAILABLE', details: { model: 'm', replica } })
  }
})

await t.test(
  'a handler that throws, or ends without a final response, is an error and not a hang',
  async (t) => {
    const bearer = new LocalBearer()
    bearer.serve('throws', async () => {
      throw new Error('broken')
    })
    bearer.serve('silent', async (_e, _t, sink) => sink.send(response(0, false)))
    await t.rejects(collect(bearer.call({ replica: 'throws' }, envelope, [], quiet)), {
      reason: 'INTERNAL',
      message: 'broken',
    })
    await t.rejects(collect(bearer.call({ replica: 'silent' }, envelope, [], quiet)), {
      reason: 'INTERNAL',
      message: /without a final response/,
    })
  },
)

await t.test(
  'the caller’s abort reaches the handler with its reason, also when it came first',
  async (t) => {
    const bearer = new LocalBearer()
    bearer.serve('a', (_e, _t, sink, o) => {
      const answer = (): void =>
        sink.send({ ...response(0, true), error: ServeError.from(o.signal.reason) })
      if (o.signal.aborted) answer()
      else o.signal.addEventListener('abort', answer)
      return new Promise(() => {})
    })
    for (const early of [true, false]) {
      const cancel = new AbortController()
      const reason = new ServeError('DEADLINE_EXCEEDED', 'over')
      if (early) cancel.abort(reason)
      const answered = collect(bearer.call({ replica: 'a' }, envelope, [], cancel))
      if (!early) cancel.abort(reason)
      t.equal((await answered)[0]?.error, reason)
    }
  },
)

await t.test(
  'a caller that stops reading gets nothing more, and the handler goes on unharmed',
  async (t) => {
    const bearer = new LocalBearer()
    const { promise: handled, resolve } = Promise.withResolvers<void>()
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
    bearer.serve('a', async (_e, _t, sink) => {
      sink.send(response(0, false))
      await stopped
      sink.send(response(1, true))
      resolve()
    })
    for await (const one of bearer.call({ replica: 'a' }, envelope, [], quiet)) {
      t.equal(one.index, 0)
      break
    }
    stop()
    await handled
  },
)
