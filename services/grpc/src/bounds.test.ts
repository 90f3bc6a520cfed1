import { once } from 'node:events'
import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { status } from '@grpc/grpc-js'
import { silentLogger, systemClock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { encodeInferRequest } from '@tutti/protocol'
import { InferenceClient } from '@tutti/protocol/client'
import { Admission } from '@tutti/serving'
import { echo, type ModelScript, response, ScriptedBackend } from '@tutti/serving/testing'
import type { NamedTensor } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { MAX_HEADER_BYTES } from './connections/grpc-caller.ts'
import { GRPC_SERVER_DEFAULTS, startGrpcServer } from './grpc-server.ts'
import { openTestServer } from './testing/test-server.ts'

const MEBIBYTE = 1024 * 1024
const PATH = '/inference.GRPCInferenceService/ModelInfer'
const x: NamedTensor = { name: 'x', datatype: 'FP32', shape: [1, 1], data: new Uint8Array(4) }
const ask = { modelName: 'm', inputs: [x] }

function bigRequest(bytes: number) {
  return { modelName: 'm', inputs: [{ ...x, data: new Uint8Array(bytes) }] }
}

function frame(message: Buffer): Buffer {
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([header, message])
}

/** A model that tells when it has a request, and answers when it is let go or its call is aborted. */
function heldModel() {
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const aborted = Promise.withResolvers<ServeError>()
  const script: ModelScript = async function* (request, { signal }) {
    const onAbort = () => {
      aborted.resolve(ServeError.from(signal.reason))
      released.reject(signal.reason)
    }
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    started.resolve()
    await released.promise
    yield response(request, request.inputs)
  }
  released.promise.catch(() => {})
  return { script, started: started.promise, aborted: aborted.promise, release: released.resolve }
}

function connectRaw(t: Test, address: string): ClientHttp2Session {
  const session = connect(`http://${address}`)
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  return session
}

function openStream(session: ClientHttp2Session, headers: Record<string, string> = {}) {
  const stream = session.request({
    ':method': 'POST',
    ':path': PATH,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  })
  stream.on('error', () => {})
  return stream
}

await t.test('a client that goes away stops the work for it', async (t) => {
  const held = heldModel()
  const { client, admission } = await openTestServer(t, { m: { script: held.script } })
  const cancel = new AbortController()
  const answer = client.infer(ask, { signal: cancel.signal })
  await held.started
  t.equal(admission.requests, 1)
  cancel.abort()
  await t.rejects(answer, { code: 'CANCELLED', reason: 'CANCELLED', message: /ancelled/ })
  t.match(await held.aborted, { reason: 'CANCELLED' })
  t.equal(admission.requests, 0)
  t.equal(admission.bytes, 0)
})

await t.test('a connection that breaks stops the work for it', async (t) => {
  const held = heldModel()
  const { address } = await openTestServer(t, { m: { script: held.script } })
  const session = connectRaw(t, address)
  openStream(session).end(frame(encodeInferRequest(ask)))
  await held.started
  session.destroy()
  t.match(await held.aborted, { reason: 'CANCELLED' })
})

await t.test('the deadline of the client is answered by us, with its reason', async (t) => {
  const clock = createManualClock()
  const held = heldModel()
  const { client, backend, admission } = await openTestServer(
    t,
    { m: { script: held.script } },
    { clock },
  )
  const answer = client.infer(ask, { headers: { 'grpc-timeout': '1500m' } })
  await held.started
  t.equal(backend.contexts[0]?.deadlineAt, 1500)
  clock.advance(1499)
  t.notOk(backend.contexts[0]?.signal.aborted)
  clock.advance(1)
  await t.rejects(answer, {
    code: 'DEADLINE_EXCEEDED',
    reason: 'DEADLINE_EXCEEDED',
    message: /1500 ms/,
  })
  t.match(await held.aborted, { reason: 'DEADLINE_EXCEEDED' })
  t.equal(admission.requests, 0)
  t.equal(clock.pending, 3, 'the deadline has no timer any more, only the watches of the server')
})

await t.test('a deadline that has passed is answered before anything is read', async (t) => {
  const { client, backend } = await openTestServer(t, { m: {} })
  await t.rejects(client.infer(ask, { headers: { 'grpc-timeout': '0n' } }), {
    reason: 'DEADLINE_EXCEEDED',
    message: /deadline/,
  })
  t.equal(backend.requests.length, 0)
})

await t.test('every unit of grpc-timeout is read, the longest ones too', async (t) => {
  const clock = createManualClock()
  const { client, backend } = await openTestServer(t, { m: {} }, { clock })
  const cases: readonly (readonly [string, number])[] = [
    ['99999999H', 99_999_999 * 3_600_000],
    ['2M', 120_000],
    ['3S', 3000],
    ['4m', 4],
    ['5000u', 5],
    ['6000000n', 6],
  ]
  for (const [header, ms] of cases) {
    await client.infer(ask, { headers: { 'grpc-timeout': header } })
    t.equal(Math.round(backend.contexts.at(-1)?.deadlineAt ?? 0), ms, header)
  }
  await t.rejects(client.infer(ask, { headers: { 'grpc-timeout': '1D' } }), {
    reason: 'MALFORMED_MESSAGE',
    message: /grpc-timeout is '1D'/,
  })
})

await t.test('without a deadline there is none', async (t) => {
  const { client, backend } = await openTestServer(t, { m: {} })
  await client.infer(ask)
  t.notOk('deadlineAt' in (backend.contexts[0] ?? {}))
})

await t.test(
  'over the bound of requests the next is refused at once, and health still answers',
  async (t) => {
    const held = heldModel()
    const admission = new Admission({ maxRequests: 1 })
    const { client } = await openTestServer(t, { m: { script: held.script } }, { admission })
    const first = client.infer(ask)
    await held.started
    await t.rejects(client.infer(ask), {
      code: 'RESOURCE_EXHAUSTED',
      reason: 'OVERLOADED',
      message: 'server is overloaded: 1 requests are in flight, the bound is 1',
    })
    await new Promise<void>((resolve, reject) => {
      client.objects.ServerLive({}, (error) => (error ? reject(error) : resolve()))
    })
    held.release()
    await first
    await t.resolves(client.infer(ask))
  },
)

await t.test('over the bound of bytes a half-read message is refused', async (t) => {
  const admission = new Admission({ maxBytes: MEBIBYTE })
  const { client, backend } = await openTestServer(t, { m: {} }, { admission })
  await t.rejects(client.infer(bigRequest(4 * MEBIBYTE)), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'OVERLOADED',
    message: /bytes of requests and answers are in flight, .* the bound is 1048576/,
  })
  t.equal(backend.requests.length, 0)
  t.equal(admission.bytes, 0, 'and its bytes are given back')
  await t.resolves(client.infer(bigRequest(MEBIBYTE / 4)), 'what fits passes, its answer too')
})

await t.test('a stalled upload ends for the first client that needs its bytes', async (t) => {
  const admission = new Admission({ maxBytes: 100_000 })
  const { client, address } = await openTestServer(t, { m: {} }, { admission })
  const session = connectRaw(t, address)
  await once(session, 'remoteSettings')
  const stream = openStream(session)
  const answered = once(stream, 'response')
  const message = frame(encodeInferRequest(bigRequest(200_000)))
  stream.write(message.subarray(0, 90_000))
  // An answered ping says that the server has read what was sent before it.
  while (admission.bytes < 90_000) await ping(session)
  await t.resolves(client.infer(bigRequest(20_000)))
  const [headers] = (await answered) as [IncomingHttpHeaders]
  t.equal(headers['grpc-status'], String(status.RESOURCE_EXHAUSTED))
  t.match(headers['grpc-message'], /has%20waited%20longest/)
  while (admission.bytes > 0) await ping(session)
  stream.write(message.subarray(90_000))
  await ping(session)
  t.equal(admission.bytes, 0, 'what comes later of it is not kept')
})

await t.test('a message over the size bound is refused with its size', async (t) => {
  const { client } = await openTestServer(t, { m: {} }, { maxMessageBytes: 1000 })
  await t.resolves(client.infer(bigRequest(900)))
  await t.rejects(client.infer(bigRequest(MEBIBYTE)), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'MESSAGE_TOO_LARGE',
    message: /message has 1048\d\d\d bytes, want at most 1000/,
  })
})

await t.test('calls other than inference have small messages', async (t) => {
  const { client } = await openTestServer(t, {})
  const error = await new Promise<unknown>((resolve) => {
    client.objects.ModelReady({ name: 'a'.repeat(5 * MEBIBYTE) }, resolve)
  })
  t.match(error, { code: 8, details: /want at most 65536/ })
})

await t.test('a message of 200 MiB passes both ways', async (t) => {
  const { client } = await openTestServer(t, { m: { script: echo() } })
  const answer = await client.infer(bigRequest(200 * MEBIBYTE))
  t.equal(answer.outputs[0]?.data.byteLength, 200 * MEBIBYTE)
})

await t.test('for a connection over the bound an idle one ends', async (t) => {
  const { client, server } = await openTestServer(t, { m: {} }, { maxConnections: 1 })
  const socket = connectSocket(server.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  socket.resume()
  await once(socket, 'connect')
  await t.resolves(client.infer(ask))
  if (!socket.closed) await once(socket, 'close')
  t.pass('the silent one is closed')
})

await t.test('a call whose headers are larger than any of gRPC is reset', async (t) => {
  const { client, address } = await openTestServer(t, { m: {} })
  const session = connectRaw(t, address)
  // Before its client has confirmed it, a setting does not count (RFC 9113, 6.5.3).
  await once(session, 'remoteSettings')
  const stream = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/ServerLive',
    'content-type': 'application/grpc',
    large: 'x'.repeat(MAX_HEADER_BYTES),
  })
  stream.on('error', () => {})
  await new Promise((resolve) => stream.once('close', resolve))
  t.equal(stream.rstCode, 11, 'ENHANCE_YOUR_CALM, which is RESOURCE_EXHAUSTED')
  await t.resolves(client.infer(ask))
})

await t.test('so are those of a client that has not confirmed our settings', async (t) => {
  const { address } = await openTestServer(t, { m: {} })
  for (const [bytes, wanted] of [
    [MAX_HEADER_BYTES, String(status.RESOURCE_EXHAUSTED)],
    [MAX_HEADER_BYTES - 1000, undefined],
  ] as const) {
    // The call goes out before the settings of the server are there. Node takes 64 KiB until they are confirmed.
    const stream = connectRaw(t, address).request({
      ':method': 'POST',
      ':path': '/inference.GRPCInferenceService/ServerLive',
      'content-type': 'application/grpc',
      large: 'x'.repeat(bytes),
    })
    stream.end(Buffer.alloc(5))
    const [headers] = await once(stream, 'response')
    t.equal(headers['grpc-status'], wanted, `${bytes} bytes`)
  }
})

await t.test('both windows are as configured from the start of a connection', async (t) => {
  for (const windowBytes of [GRPC_SERVER_DEFAULTS.windowBytes, 16 * MEBIBYTE]) {
    const { address } = await openTestServer(t, { m: {} }, { windowBytes })
    const session = connectRaw(t, address)
    const [settings] = await once(session, 'remoteSettings')
    await ping(session)
    t.equal(settings.initialWindowSize, windowBytes, 'of each stream')
    t.equal(settings.maxConcurrentStreams, GRPC_SERVER_DEFAULTS.maxConcurrentStreamsPerConnection)
    t.equal(session.state.remoteWindowSize, windowBytes, 'of the connection')
  }
})

await t.test(
  'calls that are given up by the thousand leave the connection to the others',
  async (t) => {
    const { address } = await openTestServer(t, { m: {} })
    const session = connectRaw(t, address)
    await once(session, 'remoteSettings')
    for (let round = 0; round < 12; round++) {
      // In rounds, because what is more than the streams of a connection is never sent, so it needs no reset.
      const streams = Array.from({ length: 200 }, () => openStream(session))
      const closed = streams.map((stream) => once(stream, 'close'))
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
      await Promise.all(closed)
      await ping(session)
    }
    t.notOk(session.closed)
  },
)

await t.test('an address in use is refused', async (t) => {
  const { server } = await openTestServer(t, {})
  await t.rejects(openTestServer(t, {}, { port: server.port }), {
    reason: 'SETTING_INVALID',
    message: /cannot listen on 127.0.0.1/,
  })
})

await t.test('a drain answers what was accepted and nothing more', async (t) => {
  const held = heldModel()
  const { client, server, address } = await openTestServer(t, { m: { script: held.script } })
  const accepted = client.infer(ask)
  await held.started
  const drained = server.drain({ timeoutMs: 60_000 })
  const late = new InferenceClient({ address })
  t.teardown(() => late.close())
  await t.rejects(late.infer(ask), {
    code: 'UNAVAILABLE',
    reason: 'SERVER_NOT_READY',
    message: /./,
  })
  held.release()
  t.match(await accepted, { modelName: 'm' })
  await drained
})

await t.test('a drain that takes too long answers the rest with an error', async (t) => {
  const clock = createManualClock()
  const held = heldModel()
  const { client, server } = await openTestServer(t, { m: { script: held.script } }, { clock })
  const accepted = client.infer(ask)
  await held.started
  const drained = server.drain({ timeoutMs: 5000 })
  clock.advance(5000)
  await t.rejects(accepted, {
    code: 'UNAVAILABLE',
    reason: 'SERVER_STOPPING',
    message: /not answered in time/,
  })
  t.match(await held.aborted, { reason: 'SERVER_STOPPING' })
  await drained
})

await t.test('a call that crosses with the stop is refused as not begun', async (t) => {
  const held = heldModel()
  const { server, client, address } = await openTestServer(t, { m: { script: held.script } })
  const first = client.infer(ask)
  await held.started
  const session = connectRaw(t, address)
  await once(session, 'remoteSettings')
  const drained = server.drain({ timeoutMs: 60_000 })
  // The client has not read our GOAWAY yet. REFUSED_STREAM says that nothing was done, so it may go elsewhere.
  await t.rejects(once(openStream(session), 'close'), { message: /NGHTTP2_REFUSED_STREAM/ })
  held.release()
  await t.resolves(first)
  await drained
})

await t.test('close ends connections and work at once', async (t) => {
  const held = heldModel()
  const { client, server } = await openTestServer(t, { m: { script: held.script } })
  const answer = client.infer(ask)
  await held.started
  const rejected = t.rejects(answer, { code: 'UNAVAILABLE', message: /./ })
  await server.close()
  await rejected
  t.match(await held.aborted, { reason: 'CANCELLED' })
})

await t.test('IPv6 addresses can be listened on', async (t) => {
  const server = await startGrpcServer({
    backend: new ScriptedBackend({ m: {} }),
    address: '::1',
    port: 0,
    admission: new Admission(),
    clock: systemClock,
    log: silentLogger,
    identity: { name: 't', version: '1', extensions: [] },
  })
  t.teardown(() => server.close())
  t.ok(server.port > 0)
})

await t.test('what is no gRPC is answered as HTTP says', async (t) => {
  const { address } = await openTestServer(t, { m: {} })
  const session = connectRaw(t, address)
  const stream = openStream(session, { 'content-type': 'text/plain' })
  stream.end()
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  t.equal(headers[':status'], 415)
  const unknown = openStream(session, { ':path': '/inference.GRPCInferenceService/Nope' })
  unknown.end()
  const [refused] = (await once(unknown, 'response')) as [IncomingHttpHeaders]
  t.equal(refused['grpc-status'], '12')
})

function ping(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    session.ping((error) => (error ? reject(error) : resolve()))
  })
}
