import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { encodeInferRequest } from '@tutti/protocol'
import type { InferStream } from '@tutti/protocol/client'
import { Admission } from '@tutti/serving'
import { type ModelScript, response } from '@tutti/serving/testing'
import type { NamedTensor } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { GRPC_SERVER_DEFAULTS } from './grpc-server.ts'
import { connectRaw, frame, handled, open, statusOf } from './testing/raw-calls.ts'
import { openTestServer, type TestServer } from './testing/test-server.ts'

const { readTimeoutMs, requestTimeoutMs } = GRPC_SERVER_DEFAULTS
/** The watch looks every 5 s. */
const LATE_MS = 5000
const x: NamedTensor = { name: 'x', datatype: 'UINT8', shape: [1], data: Uint8Array.of(7) }
const ask = (id = '') => ({ modelName: 'm', id, inputs: [x] })

const FRAME = frame(encodeInferRequest(ask()))

/** A model that holds requests called `held` until they are let go, and tells when it has so many. */
function holding(count = 1) {
  let held = 0
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const script: ModelScript = async function* (request) {
    if (request.context.id === 'held') {
      held += 1
      if (held === count) started.resolve()
      await released.promise
    }
    yield response(request, request.inputs)
  }
  return { script, started: started.promise, release: released.resolve }
}

async function answerOn(stream: InferStream) {
  for await (const message of stream.responses()) return message
  return undefined
}

await t.test('calls that have only begun take no place from others', async (t) => {
  const { client, address, admission } = await openTestServer(
    t,
    { m: {} },
    { admission: new Admission({ maxRequests: 1 }) },
  )
  const session = await connectRaw(t, address)
  for (let i = 0; i < 100; i++) {
    for (const method of ['ModelInfer', 'ModelStreamInfer', 'RepositoryModelLoad']) {
      const stream = open(session, method)
      if (i % 2 === 1) stream.write(FRAME.subarray(0, i % FRAME.byteLength))
    }
    // A whole message, of which the client does not say that it is all.
    open(session, 'ModelInfer').write(FRAME)
  }
  await handled(session)
  t.equal(admission.requests, 0)
  await t.resolves(client.infer(ask()))
})

await t.test('a stream takes a place while it has a request, and none between', async (t) => {
  const { script, started, release } = holding()
  const { client, admission } = await openTestServer(
    t,
    { m: { script } },
    { admission: new Admission({ maxRequests: 1 }) },
  )
  const streams = [client.openStream(), client.openStream()]
  for (const stream of streams) {
    const responses = stream.responses()[Symbol.asyncIterator]()
    await stream.send(ask('a'))
    t.match(await responses.next(), { value: { errorMessage: '', response: { id: 'a' } } })
    t.equal(admission.requests, 0)
  }
  await t.resolves(client.infer(ask()))
  const [first, second] = streams
  await first?.send(ask('held'))
  await started
  t.equal(admission.requests, 1)
  const refused = second?.responses()[Symbol.asyncIterator]()
  await second?.send(ask('b'))
  t.match(await refused?.next(), { value: { errorMessage: /^server is overloaded: 1 requests/ } })
  release()
  const done = first?.responses()[Symbol.asyncIterator]()
  t.match(await done?.next(), { value: { response: { id: 'held' } } })
  await second?.send(ask('c'))
  t.match(await refused?.next(), { value: { errorMessage: '', response: { id: 'c' } } }, 'goes on')
  for (const stream of streams) stream.end()
})

await t.test('a client that stops in the middle of a request is ended', async (t) => {
  const cases: readonly (readonly [string, string, number])[] = [
    ['only headers', 'ModelInfer', 0],
    ['only headers of a small call', 'ServerMetadata', 0],
    ['a half header', 'ModelInfer', 3],
    ['a half message', 'ModelInfer', FRAME.byteLength - 1],
    ['a message without its end', 'ModelInfer', FRAME.byteLength],
    ['a half message of a stream', 'ModelStreamInfer', FRAME.byteLength - 1],
  ]
  const clock = createManualClock()
  const { address, admission } = await openTestServer(t, { m: {} }, { clock })
  const session = await connectRaw(t, address)
  const calls = cases.map(([, method, bytes]) => {
    const stream = open(session, method)
    if (bytes > 0) stream.write(FRAME.subarray(0, bytes))
    return stream
  })
  await handled(session)
  clock.advance(readTimeoutMs - 1)
  await handled(session)
  t.ok(calls.every((stream) => !stream.closed))
  clock.advance(LATE_MS + 1)
  for (const [i, stream] of calls.entries())
    t.equal(await statusOf(stream), '4', cases[i]?.[0] ?? '')
  await handled(session)
  t.equal(admission.bytes, 0)
})

await t.test('a client that sends a request by drops is ended too', async (t) => {
  for (const method of ['ModelInfer', 'ModelStreamInfer']) {
    const clock = createManualClock()
    const { address } = await openTestServer(t, { m: {} }, { clock })
    const session = await connectRaw(t, address)
    const stream = open(session, method)
    let spentMs = 0
    for (const byte of FRAME.subarray(0, 12)) {
      t.notOk(stream.closed)
      stream.write(Buffer.of(byte))
      await handled(session)
      const stepMs = readTimeoutMs - LATE_MS
      clock.advance(stepMs)
      spentMs += stepMs
    }
    t.ok(spentMs <= requestTimeoutMs, 'so long it may take')
    clock.advance(2 * LATE_MS)
    t.equal(await statusOf(stream), '4', method)
  }
})

await t.test('a stream may wait before its first request and between two', async (t) => {
  const clock = createManualClock()
  const { client } = await openTestServer(t, { m: {} }, { clock })
  const stream = client.openStream()
  const responses = stream.responses()[Symbol.asyncIterator]()
  for (const id of ['a', 'b']) {
    clock.advance(10 * requestTimeoutMs)
    await stream.send(ask(id))
    t.match(await responses.next(), { value: { response: { id } } })
  }
  clock.advance(10 * requestTimeoutMs)
  stream.end()
  t.equal((await responses.next()).done, true)
})

await t.test('a slow model is not the client’s fault', async (t) => {
  const clock = createManualClock()
  const { script, started, release } = holding(2)
  const { client } = await openTestServer(t, { m: { script } }, { clock })
  const stream = client.openStream()
  const answers = [client.infer(ask('held')), answerOn(stream)]
  await stream.send(ask('held'))
  await started
  clock.advance(10 * requestTimeoutMs)
  release()
  for (const answer of await Promise.all(answers)) t.ok(answer)
  stream.end()
})

await t.test('unread answers take no place from others', async (t) => {
  const admission = new Admission({ maxRequests: 1 })
  const { client, address } = await openTestServer(t, { m: {} }, { admission })
  const deaf = connect(`http://${address}`, { settings: { initialWindowSize: 0 } })
  deaf.on('error', () => {})
  t.teardown(() => deaf.destroy())
  await Promise.all([once(deaf, 'localSettings'), once(deaf, 'remoteSettings')])
  for (let i = 0; i < 20; i++) {
    const answered = once(open(deaf, 'ModelInfer').end(FRAME), 'response')
    const [headers] = await answered
    t.equal(headers['grpc-status'], undefined, 'the answer has begun')
    await t.resolves(client.infer(ask()))
  }
  t.ok(admission.bytes > 0, 'its bytes are counted')
})

await t.test('of too many calls that wait for their clients the oldest end', async (t) => {
  const admission = new Admission({ maxRequests: 1 })
  const { client, address } = await openTestServer(t, { m: {} }, { admission })
  const sessions: ClientHttp2Session[] = []
  let ended = 0
  let oldest: Promise<unknown> | undefined
  for (let i = 0; i < 9; i++) {
    const session = await connectRaw(t, address)
    sessions.push(session)
    for (let k = 0; k < 1000; k++) {
      const stream = open(session, k % 2 === 0 ? 'ModelStreamInfer' : 'ModelInfer')
      stream.on('close', () => (ended += 1))
      oldest ??= statusOf(stream)
    }
    await handled(session)
  }
  t.equal(await oldest, '8', 'RESOURCE_EXHAUSTED')
  await t.resolves(client.infer(ask()))
  for (const session of sessions) await handled(session)
  t.ok(ended >= 9000 - 8193, `${ended} have ended`)
  t.ok(ended < 1000, `and no more than needed: ${ended}`)
})

function refuseAll(): never {
  throw new ServeError('UNAUTHENTICATED', 'want a token')
}

await t.test('a call that may reach nothing is refused as such by a full server', async (t) => {
  const admission = new Admission({ maxRequests: 1, maxBytes: 100 })
  const ticket = admission.open()
  ticket.enter()
  const { client } = await openTestServer(t, { m: {} }, { admission, select: refuseAll })
  await t.rejects(client.infer(ask()), { reason: 'UNAUTHENTICATED', message: /want a token/ })
  t.equal(admission.requests, 1)
})

await t.test('whatever calls are begun, one that is whole is answered', async (t) => {
  const begun = fc.record({
    method: fc.constantFrom('ModelInfer', 'ModelStreamInfer', 'ServerMetadata'),
    bytes: fc.nat(FRAME.byteLength),
    piece: fc.integer({ min: 1, max: FRAME.byteLength }),
    isCompleted: fc.boolean(),
  })
  const served = await openTestServer(
    t,
    { m: {} },
    {
      admission: new Admission({ maxRequests: 1, maxBytes: 1_000_000 }),
      // However long this takes, no call ends by time.
      clock: createManualClock(),
    },
  )
  const session = await connectRaw(t, served.address)
  await fc.assert(
    fc.asyncProperty(fc.array(begun, { minLength: 1, maxLength: 20 }), async (calls) => {
      const streams = calls.map(({ method, bytes, piece }) => {
        const stream = open(session, method)
        for (let at = 0; at < bytes; at += piece) {
          stream.write(FRAME.subarray(at, Math.min(bytes, at + piece)))
        }
        return stream
      })
      // A whole request of a stream is executed, and has the place meanwhile.
      await withoutRequests(served, session)
      await served.client.infer(ask())
      for (const [i, { method, bytes, isCompleted }] of calls.entries()) {
        const stream = streams[i]
        if (stream === undefined) continue
        if (isCompleted && method !== 'ServerMetadata') {
          await withoutRequests(served, session)
          stream.end(FRAME.subarray(bytes))
          if ((await statusOf(stream)) !== '0') return false
        } else stream.close()
      }
      await idle(served, session)
      return true
    }),
    { numRuns: 30 },
  )
})

/** Waits until no request has a place; it hangs if one keeps it. */
async function withoutRequests({ admission }: TestServer, session: ClientHttp2Session) {
  do await handled(session)
  while (admission.requests > 0)
}

async function idle({ admission }: TestServer, session: ClientHttp2Session): Promise<void> {
  do await handled(session)
  while (admission.requests > 0 || admission.bytes > 0)
}

await t.test(
  'what is answered before it is read leaves no stream open',
  { timeout: 20_000 },
  async (t) => {
    const streams = 8
    const o = { maxConcurrentStreamsPerConnection: streams }
    const { address } = await openTestServer(t, {}, o)
    const kinds: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
      ['ModelInfer', { 'content-type': 'text/plain' }],
      ['ModelInfer', { ':method': 'GET', 'content-type': '' }],
      ['Nope', {}],
      ['ModelInfer', { 'grpc-timeout': 'x' }],
      ['ModelInfer', { 'grpc-timeout': '0n' }],
    ]
    for (const [method, headers] of kinds) {
      const session = await connectRaw(t, address)
      // Each of them but the first needs the place of one that is closed.
      const opened = Array.from({ length: 4 * streams }, () => open(session, method, headers))
      const closed = await Promise.all(
        opened.map(async (stream) => {
          stream.resume()
          await once(stream, 'close')
          return stream.rstCode
        }),
      )
      t.same(new Set(closed), new Set([0]), JSON.stringify(headers))
    }
  },
)
