import { once } from 'node:events'
import { type ClientHttp2Stream, connect, constants, type IncomingHttpHeaders } from 'node:http2'
import { decodeInferResponse, encodeInferRequest, inferenceServices } from '@tutti/protocol'
import { InferenceClient } from '@tutti/protocol/client'
import { echo, response } from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import { openTestServer } from './testing/test-server.ts'

const PATH = '/inference.GRPCInferenceService/ModelInfer'
const data = new Uint8Array(Float32Array.from([1, 2]).buffer)
const x = { name: 'x', datatype: 'FP32', shape: [1, 2], data } as const

function frame(message: Uint8Array): Buffer {
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([header, message])
}

const request = frame(encodeInferRequest({ modelName: 'm', id: '7', inputs: [x] }))

interface Answer {
  readonly headers: IncomingHttpHeaders
  readonly trailers: IncomingHttpHeaders
  readonly body: Buffer
}

async function readAnswer(stream: ClientHttp2Stream): Promise<Answer> {
  const pieces: Buffer[] = []
  let headers: IncomingHttpHeaders = {}
  let trailers: IncomingHttpHeaders = {}
  stream.on('response', (received) => (headers = received))
  stream.on('trailers', (received) => (trailers = received))
  stream.on('data', (piece: Buffer) => pieces.push(piece))
  await once(stream, 'close')
  return { headers, trailers, body: Buffer.concat(pieces) }
}

function openSession(t: Test, address: string) {
  const session = connect(`http://${address}`)
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  return (headers: Record<string, string> = {}) =>
    session.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    })
}

await t.test('an answer is headers, one message and trailers, as gRPC asks', async (t) => {
  const { address } = await openTestServer(t, { m: { script: echo() } })
  const open = openSession(t, address)
  for (const headers of [
    {},
    { 'content-type': 'application/grpc+proto' },
    { 'grpc-encoding': 'identity' },
    { 'content-type': 'application/grpc+json' },
  ]) {
    const stream = open(headers)
    stream.end(request)
    const answer = await readAnswer(stream)
    t.match(answer.headers, { ':status': 200, 'content-type': 'application/grpc+proto' })
    t.match(answer.headers['grpc-accept-encoding'], /identity.*gzip/)
    t.equal(answer.trailers['grpc-status'], '0')
    t.equal(answer.body.readUInt32BE(1), answer.body.byteLength - 5)
    t.match(decodeInferResponse(answer.body.subarray(5)), { modelName: 'm', id: '7' })
  }
})

await t.test('a message may come byte by byte', async (t) => {
  const { address } = await openTestServer(t, { m: { script: echo() } })
  const stream = openSession(t, address)()
  for (const byte of request) stream.write(Buffer.from([byte]))
  stream.end()
  const { trailers, body } = await readAnswer(stream)
  t.equal(trailers['grpc-status'], '0')
  t.same(decodeInferResponse(body.subarray(5)).outputs[0]?.data, Buffer.from(data))
})

await t.test('what is not one message is refused with its reason, in one answer', async (t) => {
  const { address, backend } = await openTestServer(t, { m: { script: echo() } })
  const open = openSession(t, address)
  for (const body of [
    Buffer.alloc(0),
    request.subarray(0, 20),
    Buffer.concat([request, request]),
    frame(Buffer.from([0x0a, 9])),
  ]) {
    const stream = open()
    stream.end(body)
    const { headers } = await readAnswer(stream)
    t.equal(headers['grpc-status'], '3')
    t.ok(headers['grpc-status-details-bin'])
    t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
  }
  const compressed = Buffer.from(request)
  compressed[0] = 1
  const flagged = Buffer.from(request)
  flagged[0] = 2
  for (const [body, encoding, status] of [
    [flagged, 'identity', '3'],
    [compressed, 'identity', '3'],
    [compressed, 'gzip', '13'],
    [compressed, 'zap', '12'],
  ] as const) {
    const stream = open({ 'grpc-encoding': encoding })
    stream.end(body)
    const { headers } = await readAnswer(stream)
    t.equal(headers['grpc-status'], status, encoding)
  }
  t.equal(backend.contexts.length, 0, 'nothing was executed')
})

await t.test('a request that is reset before its end is not executed', async (t) => {
  const { address, backend } = await openTestServer(t, { m: { script: echo() } })
  const open = openSession(t, address)
  const gone = open()
  gone.on('error', () => {})
  gone.write(request)
  gone.close(constants.NGHTTP2_CANCEL)
  await once(gone, 'close')
  const stream = open()
  stream.end(request)
  const { trailers } = await readAnswer(stream)
  t.equal(trailers['grpc-status'], '0')
  t.equal(backend.contexts.length, 1)
})

await t.test('an answer that comes after the client has gone is dropped', async (t) => {
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const served = await openTestServer(t, {
    m: {
      script: async function* (asked) {
        started.resolve()
        await released.promise
        try {
          yield response(asked, [x])
        } finally {
          ended.resolve()
        }
      },
    },
  })
  const stream = openSession(t, served.address)()
  stream.on('error', () => {})
  stream.end(request)
  await started.promise
  stream.close(constants.NGHTTP2_CANCEL)
  await once(stream, 'close')
  released.resolve()
  await ended.promise
  await served.server.drain({ timeoutMs: 60_000 })
  t.equal(served.admission.requests, 0)
  t.equal(served.admission.bytes, 0)
})

await t.test('much both ways on one connection stops neither side', async (t) => {
  const { address } = await openTestServer(t, { m: { script: echo() } })
  // Even a client that lets more be under way than the sockets hold.
  const client = new InferenceClient({ address, windowBytes: 16 * 1024 * 1024 })
  t.teardown(() => client.close())
  const big = new Uint8Array(8 * 1024 * 1024)
  const input = { name: 'x', datatype: 'UINT8', shape: [big.byteLength], data: big } as const
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => client.infer({ modelName: 'm', inputs: [input] })),
  )
  for (const { outputs } of answers) t.equal(outputs[0]?.data.byteLength, big.byteLength)
})

await t.test('another method is refused as inference is', async (t) => {
  const { address } = await openTestServer(t, { m: {} })
  const open = openSession(t, address)
  const path = '/inference.GRPCInferenceService/ModelReady'
  for (const [body, text] of [
    [Buffer.alloc(0), 'call has 0 bytes, want one message'],
    [Buffer.from([0, 0, 0]), 'call has 3 bytes, want one message'],
    [
      Buffer.concat([frame(Buffer.alloc(0)), Buffer.alloc(2)]),
      'call has 2 bytes after its message',
    ],
    [Buffer.concat([frame(Buffer.alloc(0)), frame(Buffer.alloc(0))]), 'call has a second message'],
    [frame(Buffer.of(0x0f)), 'malformed message'],
    [Buffer.from([7, 0, 0, 0, 0]), 'message has the flags 7, want 0 or 1'],
  ] as const) {
    const stream = open({ ':path': path })
    stream.end(body)
    const { headers } = await readAnswer(stream)
    t.equal(headers['grpc-status'], '3', text)
    t.ok(headers['grpc-status-details-bin'], text)
    t.match(decodeURI(String(headers['grpc-message'])), text)
  }
})

await t.test('every method of the service has a record', async (t) => {
  const { address } = await openTestServer(t, { m: { script: echo() } })
  const open = openSession(t, address)
  const paths = Object.values(inferenceServices().inference).map(({ path }) => path)
  t.ok(paths.length > 15)
  for (const path of [...paths, '/inference.GRPCInferenceService/Nothing']) {
    const stream = open({ ':path': path })
    const answer = readAnswer(stream)
    stream.end(frame(new Uint8Array()))
    const { headers, trailers } = await answer
    const message = decodeURIComponent(
      String(trailers['grpc-message'] ?? headers['grpc-message'] ?? ''),
    )
    const isUnknown = /does not implement the method/.test(message)
    t.equal(isUnknown, path.endsWith('/Nothing'), `${path}: ${message}`)
  }
})
