import { once } from 'node:events'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startFaultProxy } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { type ModelScript, response } from '@tutti/serving/testing'
import t from 'tap'
import { openTestServer } from '../testing/test-server.ts'

/** A ModelInferRequest that says only the name of the model, `large`, as a message of gRPC. */
const REQUEST = Buffer.from('\x00\x00\x00\x00\x07\x0a\x05large', 'latin1')

await t.test('the last answer before a close is whole', async (t) => {
  const data = new Uint8Array(4 * 1024 * 1024)
  const clients = 2
  const waiting = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let started = 0
  const script: ModelScript = async function* (request) {
    started += 1
    if (started === clients) waiting.resolve()
    await released.promise
    yield response(request, [{ name: 'y', datatype: 'UINT8', shape: [data.length], data }])
  }
  const { server, address } = await openTestServer(t, { m: { script } })
  const answers = Array.from({ length: clients }, () => {
    const client = new InferenceClient({ address })
    t.teardown(() => client.close())
    return client.infer({ modelName: 'm', inputs: [] })
  })
  await waiting.promise
  const closed = server.drain({ timeoutMs: 60_000 }).then(() => server.close())
  released.resolve()
  for (const answer of answers) {
    t.equal((await answer).outputs[0]?.data.byteLength, data.byteLength)
  }
  await closed
})

await t.test('a call that is on its way when the server begins to drain is answered', async (t) => {
  const { server } = await openTestServer(t, { m: {} })
  const proxy = await startFaultProxy({ port: server.port })
  t.teardown(() => proxy.close())
  const client = new InferenceClient({ address: `127.0.0.1:${proxy.port}` })
  t.teardown(() => client.close())
  await client.infer({ modelName: 'm', inputs: [] })
  proxy.delay(200)
  const drained = server.drain({ timeoutMs: 10_000 })
  t.match(await client.infer({ modelName: 'm', inputs: [] }), { modelName: 'm' })
  t.equal(await drained, true)
  await t.rejects(client.infer({ modelName: 'm', inputs: [] }), { code: 'UNAVAILABLE' })
})

await t.test('a stream that is on its way when the server begins to drain is ended', async (t) => {
  const { server } = await openTestServer(t, { m: {} })
  const proxy = await startFaultProxy({ port: server.port })
  t.teardown(() => proxy.close())
  const client = new InferenceClient({ address: `127.0.0.1:${proxy.port}` })
  t.teardown(() => client.close())
  await client.infer({ modelName: 'm', inputs: [] })
  proxy.delay(200)
  const drained = server.drain({ timeoutMs: 10_000 })
  const responses = client.openStream().responses()
  await t.rejects(responses.next(), {
    code: 'UNAVAILABLE',
    reason: 'SERVER_STOPPING',
  })
  t.equal(await drained, true)
})

await t.test('a client that reads no answer harms no other when the server drains', async (t) => {
  const released = Promise.withResolvers<void>()
  const slow: ModelScript = async function* (request) {
    await released.promise
    yield response(request, [])
  }
  const data = new Uint8Array(32 * 1024 * 1024)
  const large: ModelScript = async function* (request) {
    yield response(request, [{ name: 'y', datatype: 'UINT8', shape: [data.length], data }])
  }
  const scripts = { slow: { script: slow }, large: { script: large } }
  const { server, client } = await openTestServer(t, scripts)
  const answer = client.infer({ modelName: 'slow', inputs: [] })
  const reader = connect(server.port, '127.0.0.1')
  t.teardown(() => reader.destroy())
  reader.on('error', () => {})
  reader.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  // Windows as large as they can be, and the server's settings confirmed.
  reader.write(Buffer.from('00000604000000000000047fffffff', 'hex'))
  reader.write(Buffer.from('0000040800000000007fff0000', 'hex'))
  reader.write(Buffer.from('000000040100000000', 'hex'))
  reader.write(Buffer.concat([frame(1, 4, headers()), frame(0, 1, REQUEST)]))
  // The bytes that have come are the beginning of the answer; the kernel holds some MB more, and the server the rest.
  while (reader.bytesRead < 1024 * 1024) await once(reader, 'data')
  reader.pause()
  await sleep(100)
  const drained = server.drain({ timeoutMs: 60_000 })
  await sleep(100)
  reader.resume()
  released.resolve()
  t.match(await answer, { modelName: 'slow' })
  t.equal(await drained, true)
})

/** The headers of its call (RFC 7541): POST and http from the table, :path, :authority, content-type and te with values. */
function headers(): Buffer {
  const path = Buffer.from('/inference.GRPCInferenceService/ModelInfer')
  const type = Buffer.from('application/grpc')
  return Buffer.concat([
    Buffer.of(0x83, 0x86, 0x04, path.byteLength),
    path,
    Buffer.of(0x01, 1, 0x61, 0x0f, 0x10, type.byteLength),
    type,
    Buffer.of(0x00, 2, 0x74, 0x65, 8),
    Buffer.from('trailers'),
  ])
}

/** A frame of HTTP/2 on stream 1. */
function frame(type: number, flags: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.byteLength, 0, 3)
  head.set([type, flags], 3)
  head.writeUInt32BE(1, 5)
  return Buffer.concat([head, payload])
}

await t.test('a client that answers no ping is dropped, one that does stays', async (t) => {
  const { server, client } = await openTestServer(t, { m: {} }, { keepaliveMs: 50 })
  await client.infer({ modelName: 'm', inputs: [] })
  const silent = connect(server.port, '127.0.0.1')
  t.teardown(() => silent.destroy())
  silent.on('error', () => {})
  silent.resume()
  // The preface and empty settings, and then nothing more.
  silent.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  silent.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))
  await once(silent, 'close')
  await sleep(200)
  t.match(await client.infer({ modelName: 'm', inputs: [] }), { modelName: 'm' })
})

await t.test('a client that pings too often is told so, unless it has an open call', async (t) => {
  const { server, address } = await openTestServer(t, { m: {} }, { maxPingStrikes: 2 })
  const session = connectHttp2(`http://${address}`)
  t.teardown(() => session.destroy())
  // Its code says that it was too much.
  session.on('error', () => {})
  const ping = () => new Promise((resolve) => session.ping(() => resolve(undefined)))
  const stream = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/ModelStreamInfer',
    'content-type': 'application/grpc',
  })
  stream.resume()
  for (let i = 0; i < 10; i++) await ping()
  t.equal(session.closed, false)
  stream.end()
  await once(stream, 'close')
  const goodbye = once(session, 'goaway')
  // The first ones may come while the server still closes the call.
  for (let i = 0; i < 50 && !session.destroyed; i++) await ping()
  const [code, , reason] = await goodbye
  t.equal(code, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  t.equal(String(reason), 'too_many_pings')
  const patient = new InferenceClient({ address: `127.0.0.1:${server.port}` })
  t.teardown(() => patient.close())
  t.match(await patient.infer({ modelName: 'm', inputs: [] }), { modelName: 'm' })
})

await t.test('a client without calls is not pinged if that is not wanted', async (t) => {
  const life = { keepaliveMs: 20, isPingedWithoutCalls: false }
  const { address } = await openTestServer(t, { m: {} }, life)
  const session = connectHttp2(`http://${address}`)
  t.teardown(() => session.destroy())
  let pings = 0
  session.on('ping', () => (pings += 1))
  await once(session, 'connect')
  await sleep(200)
  t.equal(pings, 0)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/ModelStreamInfer',
    'content-type': 'application/grpc',
  })
  await once(session, 'ping')
  t.equal(pings, 1)
  stream.close()
})

await t.test('an old connection ends with its calls', async (t) => {
  const released = Promise.withResolvers<void>()
  const slow: ModelScript = async function* (request) {
    await released.promise
    yield response(request, [])
  }
  const scripts = { m: {}, slow: { script: slow } }
  const { client, address } = await openTestServer(t, scripts, { maxAgeMs: 100 })
  const answer = client.infer({ modelName: 'slow', inputs: [] })
  const session = connectHttp2(`http://${address}`)
  t.teardown(() => session.destroy())
  const closed = once(session, 'close')
  const [code] = await once(session, 'goaway')
  t.equal(code, constants.NGHTTP2_NO_ERROR)
  await closed
  t.match(await client.infer({ modelName: 'm', inputs: [] }), { modelName: 'm' })
  released.resolve()
  t.match(await answer, { modelName: 'slow' })
})

await t.test('the longest age that there is ends no connection', async (t) => {
  const { address } = await openTestServer(t, { m: {} }, { maxAgeMs: 2 ** 31 - 1 })
  // An age is a tenth more or less: some of these have one that no timer could wait for.
  const sessions = Array.from({ length: 12 }, () => connectHttp2(`http://${address}`))
  t.teardown(() => sessions.map((session) => session.destroy()))
  const goodbyes: number[] = []
  for (const session of sessions) session.on('goaway', (code: number) => goodbyes.push(code))
  await Promise.all(sessions.map((session) => once(session, 'connect')))
  await sleep(50)
  t.same(goodbyes, [])
})

const stuck: ModelScript = async function* (_request, context) {
  yield* []
  await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()))
}

await t.test('an old connection cuts its calls off when their grace is over', async (t) => {
  const life = { maxAgeMs: 100, maxAgeGraceMs: 100 }
  const { client } = await openTestServer(t, { m: {}, stuck: { script: stuck } }, life)
  await t.rejects(client.infer({ modelName: 'stuck', inputs: [] }))
  t.match(await client.infer({ modelName: 'm', inputs: [] }), { modelName: 'm' })
})

await t.test('a client that says goodbye and keeps its connection open is dropped', async (t) => {
  const { server } = await openTestServer(t, { m: {} })
  const client = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => client.destroy())
  client.resume()
  client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  // Empty settings, the server's confirmed, and GOAWAY without an error.
  client.write(Buffer.from('000000040000000000', 'hex'))
  client.write(Buffer.from('000000040100000000', 'hex'))
  client.write(Buffer.from('0000080700000000000000000000000000', 'hex'))
  await once(client, 'end')
  const refused = new Promise((resolve) => client.once('error', resolve))
  const writing = setInterval(() => client.write(Buffer.of(0)), 20)
  t.teardown(() => clearInterval(writing))
  t.match(await refused, { code: /^(EPIPE|ECONNRESET)$/ })
})
