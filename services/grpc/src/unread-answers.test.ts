import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { createManualClock } from '@tutti/chassis/testing'
import { encodeInferRequest } from '@tutti/protocol'
import { Admission } from '@tutti/serving'
import { type ModelScript, response } from '@tutti/serving/testing'
import type { NamedTensor } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { openTestServer } from './testing/test-server.ts'

const MEBIBYTE = 1024 * 1024
const SERVICE = '/inference.GRPCInferenceService'
const WRITE_TIMEOUT_MS = 60_000

const x: NamedTensor = { name: 'x', datatype: 'UINT8', shape: [1], data: Uint8Array.of(7) }
const y: NamedTensor = {
  name: 'y',
  datatype: 'UINT8',
  shape: [MEBIBYTE],
  data: new Uint8Array(MEBIBYTE),
}

/** Answers a request of a few bytes with a mebibyte; the request `small` with a few bytes. */
const grow: ModelScript = async function* (request) {
  yield response(request, [request.context.id === 'small' ? x : y])
}

function frame(id: string, encoding = 'identity'): Buffer {
  const message = encodeInferRequest({ modelName: 'm', id, inputs: [x] })
  const body = encoding === 'identity' ? message : gzipSync(message)
  const header = Buffer.alloc(5)
  header[0] = encoding === 'identity' ? 0 : 1
  header.writeUInt32BE(body.byteLength, 1)
  return Buffer.concat([header, body])
}

/** Each way on which an answer leaves the server. */
const WAYS = [
  { way: 'on the stream itself', method: 'ModelInfer', encoding: 'identity' },
  { way: 'to a compressed request', method: 'ModelInfer', encoding: 'gzip' },
  { way: 'in a request stream', method: 'ModelStreamInfer', encoding: 'identity' },
] as const

/** A client that takes no byte of an answer: the flow-control window of each of its streams is 0. */
async function connectDeaf(t: Test, address: string): Promise<ClientHttp2Session> {
  const session = connect(`http://${address}`, { settings: { initialWindowSize: 0 } })
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  // Until the server has the setting it would use the default window.
  await Promise.all([once(session, 'localSettings'), once(session, 'remoteSettings')])
  return session
}

function open(
  session: ClientHttp2Session,
  { method, encoding }: { readonly method: string; readonly encoding: string },
): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': `${SERVICE}/${method}`,
    'content-type': 'application/grpc',
    'grpc-encoding': encoding,
    te: 'trailers',
  })
  stream.on('error', () => {})
  return stream
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await nextTurn()
}

await t.test(
  'an answer that its client does not read is counted, and ends for the first client that needs its bytes',
  async (t) => {
    for (const { way, ...how } of WAYS) {
      const admission = new Admission({ maxBytes: 1.5 * MEBIBYTE })
      const { client, address } = await openTestServer(t, { m: { script: grow } }, { admission })
      const session = await connectDeaf(t, address)
      const stream = open(session, how)
      stream.write(frame('', how.encoding))
      if (how.method === 'ModelInfer') stream.end()
      await until(() => admission.bytes > MEBIBYTE)
      await t.resolves(client.infer({ modelName: 'm', id: 'small', inputs: [x] }), way)
      t.notOk(stream.closed, 'there is room for both')
      const closed = new Promise((resolve) => stream.once('close', resolve))
      await t.resolves(client.infer({ modelName: 'm', inputs: [x] }), `a second answer ${way}`)
      await closed
      t.equal(stream.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM, way)
      await until(() => admission.bytes === 0)
      t.equal(admission.requests, 0, way)
    }
  },
)

await t.test('answers beyond the bound are refused on each way, in words', async (t) => {
  const admission = new Admission({ maxBytes: MEBIBYTE })
  const { client, address } = await openTestServer(t, { m: { script: grow } }, { admission })
  const deaf = await connectDeaf(t, address)
  for (const encoding of ['identity', 'gzip']) {
    const stream = open(deaf, { method: 'ModelInfer', encoding })
    stream.end(frame('', encoding))
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    t.equal(headers['grpc-status'], '8', encoding)
    t.match(headers['grpc-message'], /would%20go%20over/, encoding)
  }
  const stream = client.openStream()
  for (const id of ['large', 'small']) await stream.send({ modelName: 'm', id, inputs: [x] })
  stream.end()
  const texts: string[] = []
  for await (const { errorMessage, response: answer } of stream.responses()) {
    texts.push(`${answer?.id}: ${errorMessage}`)
  }
  t.match(texts, [/^large: server is overloaded: /, /^small: $/])
  await until(() => admission.bytes === 0)
  t.equal(admission.requests, 0)
})

await t.test('responses that wait for an earlier one are counted too', async (t) => {
  const first = Promise.withResolvers<void>()
  const script: ModelScript = async function* (request) {
    if (request.context.id === 'first') await first.promise
    yield response(request, [y])
  }
  const { client, admission } = await openTestServer(t, { m: { script } })
  const stream = client.openStream()
  for (const id of ['first', 'b', 'c']) await stream.send({ modelName: 'm', id, inputs: [x] })
  stream.end()
  await until(() => admission.bytes > 2 * MEBIBYTE)
  first.resolve()
  const ids: unknown[] = []
  for await (const { response: answer } of stream.responses()) ids.push(answer?.id)
  t.same(ids, ['first', 'b', 'c'])
  await until(() => admission.bytes === 0)
  t.equal(admission.requests, 0)
})

await t.test('a client that takes nothing of its answer is cut off after a time', async (t) => {
  const control = { way: 'of another method', method: 'ServerLive', encoding: 'identity' } as const
  for (const { way, ...how } of [...WAYS, control]) {
    const clock = createManualClock()
    const { address, admission } = await openTestServer(
      t,
      { m: { script: grow } },
      { clock, writeTimeoutMs: WRITE_TIMEOUT_MS },
    )
    const stream = open(await connectDeaf(t, address), how)
    const answered = once(stream, 'response')
    // Only the request stream is left open by the client.
    if (how.method === 'ServerLive') stream.end(Buffer.alloc(5))
    else stream.write(frame('', how.encoding))
    if (how.method === 'ModelInfer') stream.end()
    await answered
    clock.advance(WRITE_TIMEOUT_MS - 1)
    t.notOk(stream.closed, way)
    const closed = new Promise((resolve) => stream.once('close', resolve))
    clock.advance(1)
    await closed
    t.equal(stream.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM, way)
    await until(() => admission.bytes === 0)
    t.equal(admission.requests, 0, way)
  }
})

await t.test('a request stream that waits for requests is not cut off', async (t) => {
  const clock = createManualClock()
  const { client } = await openTestServer(
    t,
    { m: { script: grow } },
    { clock, writeTimeoutMs: WRITE_TIMEOUT_MS },
  )
  const stream = client.openStream()
  const responses = stream.responses()[Symbol.asyncIterator]()
  for (const id of ['a', 'b']) {
    await stream.send({ modelName: 'm', id, inputs: [x] })
    t.match(await responses.next(), { value: { response: { id } } })
    // The write is confirmed to us a turn after its bytes have left.
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    clock.advance(2 * WRITE_TIMEOUT_MS)
  }
  stream.end()
  t.equal((await responses.next()).done, true)
})
