import { connect } from 'node:http2'
import { encodeInferRequest, inferenceServices } from '@tutti/protocol'
import { type ModelScript, response } from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import { OK_TRAILERS } from '../call/answer-headers.ts'
import { inflateMessage } from '../call/inflate.ts'
import { type FramedMessage, MessageReader } from '../call/message-reader.ts'
import { openTestServer } from '../testing/test-server.ts'
import { type CompressionLevel, compressAnswers } from './compressed-answers.ts'
import { toFrame } from './method.ts'

const ZEROS = new Uint8Array(100_000)
const { ModelInfer, ModelStreamInfer } = inferenceServices().inference

const zeros: ModelScript = async function* (request) {
  yield response(request, [{ name: 'y', datatype: 'UINT8', shape: [ZEROS.length], data: ZEROS }])
}
const fails: ModelScript = async function* () {
  yield* []
  throw new Error('the model has failed')
}

async function open(t: Test, compressionLevel: CompressionLevel) {
  const models = { zeros: { script: zeros }, small: {}, fails: { script: fails } }
  const served = await openTestServer(t, models, { compressionLevel })
  const session = connect(`http://${served.address}`)
  t.teardown(() => session.destroy())
  /** Headers and messages of an answer. */
  const call = async (path: string, accepted: string, models: readonly string[]) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      'grpc-accept-encoding': accepted,
      te: 'trailers',
    })
    let headers: Readonly<Record<string, unknown>> = {}
    stream.on('response', (given) => {
      headers = { ...headers, ...given }
    })
    stream.on('trailers', (given) => {
      headers = { ...headers, ...given }
    })
    const asked = models.map((modelName) => encodeInferRequest({ modelName, inputs: [] }))
    stream.end(Buffer.concat(asked.map(toFrame)))
    const reader = new MessageReader(2 ** 22)
    const framed: FramedMessage[] = []
    for await (const piece of stream) {
      reader.add(piece)
      for (let it = reader.next(); it !== undefined; it = reader.next()) framed.push(it)
      reader.keep()
    }
    const messages = framed.map(({ message }) => message)
    return { headers, messages, flags: framed.map(({ flags }) => flags) }
  }
  return { ...served, call }
}

await t.test(
  'answers are compressed for clients that accept it, if that makes them smaller',
  async (t) => {
    const { call, client, admission } = await open(t, 'high')
    const rows = [
      ['identity,deflate,gzip', 'gzip'],
      ['deflate', 'deflate'],
    ] as const
    for (const [accepted, encoding] of rows) {
      const { headers, messages, flags } = await call(ModelInfer.path, accepted, ['zeros'])
      t.match(headers, { 'grpc-encoding': encoding, 'grpc-status': '0' })
      const [compressed = Buffer.alloc(0)] = messages
      t.same(flags, [1])
      t.ok(compressed.byteLength < 1000, `${compressed.byteLength} bytes`)
      const o = { encoding, maxBytes: 2 ** 20, charge: () => {} }
      const message = await inflateMessage(compressed, o)
      t.ok(message.includes(Buffer.from(ZEROS)), 'the tensor is in it')
    }
    const small = await call(ModelInfer.path, 'gzip', ['small'])
    t.match(small, { headers: { 'grpc-status': '0' }, flags: [0] })
    const plain = await call(ModelInfer.path, 'identity', ['zeros'])
    t.match(plain, { headers: { 'grpc-status': '0' }, flags: [0] })
    t.ok((plain.messages[0]?.byteLength ?? 0) > ZEROS.length)
    t.notOk('grpc-encoding' in plain.headers)
    const failed = await call(ModelInfer.path, 'gzip', ['fails'])
    t.match(failed, { headers: { 'grpc-message': /failed/ }, flags: [] })
    const { outputs } = await client.infer({ modelName: 'zeros', inputs: [] })
    t.ok(Buffer.from(ZEROS).equals(outputs[0]?.data ?? ZEROS.subarray(1)), 'inflated by a client')
    t.equal(admission.bytes, 0)
  },
)

await t.test('compressed responses of a stream keep their order', async (t) => {
  const { call, admission } = await open(t, 'low')
  const { headers, flags } = await call(ModelStreamInfer.path, 'gzip', ['zeros', 'small', 'zeros'])
  t.match(headers, { 'grpc-encoding': 'gzip', 'grpc-status': '0' })
  t.same(flags, [1, 0, 1])
  t.equal(admission.bytes, 0)
})

/** A call whose client leaves when the test says so. @returns what is written, once all is. */
function callWithoutClient(messages: readonly Uint8Array[]) {
  const written: number[] = []
  const done = Promise.withResolvers<readonly number[]>()
  const stream = {
    isOver: false,
    write: (frame: Buffer) => written.push(frame.byteLength),
    end: () => done.resolve(written),
  }
  const call = { headers: { 'grpc-accept-encoding': 'gzip' }, stream }
  const serve = compressAnswers(({ answer }) => {
    for (const message of messages) answer.write(toFrame(message))
    answer.end(OK_TRAILERS)
  }, 'high')
  Reflect.apply(serve, undefined, [call, {}])
  return { leave: () => (stream.isOver = true), written: done.promise }
}

await t.test('what a client that has left would have got is not compressed', async (t) => {
  const whole = toFrame(ZEROS).byteLength
  const calls = Array.from({ length: 8 }, () => callWithoutClient([ZEROS, ZEROS]))
  // The first four begin at once.
  for (let turns = 0; turns < 5; turns++) await Promise.resolve()
  for (const { leave } of calls) leave()
  const written = await Promise.all(calls.map((call) => call.written))
  t.same(
    written.map((sizes) => sizes.filter((size) => size < whole).length),
    [1, 1, 1, 1, 0, 0, 0, 0],
  )
  t.ok(written.every((sizes) => sizes.length === 2))
  const [size = whole] = await callWithoutClient([ZEROS]).written
  t.ok(size < whole, 'later ones are compressed')
})

await t.test('without a level no answer is compressed', async (t) => {
  const { call } = await open(t, 'none')
  const { headers, flags } = await call(ModelInfer.path, 'gzip', ['zeros'])
  t.notOk('grpc-encoding' in headers)
  t.same(flags, [0])
})
