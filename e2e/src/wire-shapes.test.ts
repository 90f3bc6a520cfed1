import { once } from 'node:events'
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { encodeInferRequest } from '@tutti/protocol'
import t, { type Test } from 'tap'
import { servesRightBytes } from './hostile.ts'
import { type Serving, serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { row } from './tensors.ts'

t.setTimeout(600_000)

const MODELS = ['ens_chain', 'add_one_batch']

/** Sends bytes to a port and gives back everything that comes until the server hangs up. */
async function exchange(test: Test, port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  test.teardown(() => socket.destroy())
  let answer = ''
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1')
  })
  // A reset is an end like any other here.
  socket.on('error', () => {})
  socket.write(Buffer.from(text, 'latin1'))
  await once(socket, 'close')
  return answer
}

const SMUGGLED = 'GET /v2/smuggled HTTP/1.1\r\nhost: x\r\n\r\n'

/** Heads whose body two parsers would end at different places; behind each one stands a request of its own. */
const AMBIGUOUS: Readonly<Record<string, string>> = {
  'both lengths': `content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  'both lengths, the other way round': `transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n`,
  'two content lengths': 'content-length: 2\r\ncontent-length: 0\r\n\r\n{}',
  'a list of content lengths': 'content-length: 2, 2\r\n\r\n{}',
  'a content length with a sign': 'content-length: +2\r\n\r\n{}',
  'a content length in hexadecimal': 'content-length: 0x2\r\n\r\n{}',
  'chunked, but not last': 'transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'chunked twice': 'transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  'an unknown transfer encoding': 'transfer-encoding: xchunked\r\n\r\n0\r\n\r\n',
  'a blank before the colon': 'transfer-encoding : chunked\r\n\r\n0\r\n\r\n',
  'a folded header': 'x: y\r\n transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n{}',
  'a chunk size that lies': 'transfer-encoding: chunked\r\n\r\n2\r\n{}xx\r\n0\r\n\r\n',
  'a chunk size that is none': 'transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
  'a bare line feed': 'content-length: 2\n\n{}',
}

await t.test('an HTTP request that is ambiguous is refused with what follows it', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  for (const [what, rest] of Object.entries(AMBIGUOUS)) {
    const head = 'POST /v2/models/ens_chain/infer HTTP/1.1\r\nhost: x\r\n'
    const answer = await exchange(t, serving.httpPort, `${head}${rest}${SMUGGLED}`)
    t.match(answer, /^HTTP\/1\.1 400 /, what)
    t.equal(answer.split('HTTP/1.1 ').length, 2, `${what}: one answer`)
  }
  await servesRightBytes(t, serving)
})

interface Lie {
  readonly code: number
  readonly bytes: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

interface Status {
  readonly code: string
  readonly text: string
}

/** One ModelInfer whose bytes on the stream are given, frame header and all. */
async function sendFrames(
  test: Test,
  serving: Serving,
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<Status> {
  const session = connectHttp2(`http://127.0.0.1:${serving.grpcPort}`)
  test.teardown(() => session.destroy())
  const stream = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/ModelInfer',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  })
  let status: Status = { code: 'none', text: '' }
  const keep = ({ 'grpc-status': code, 'grpc-message': text }: IncomingHttpHeaders): void => {
    if (code !== undefined) status = { code: code.toString(), text: text?.toString() ?? '' }
  }
  stream.on('response', keep)
  stream.on('trailers', keep)
  // A reset after the answer only says that the rest is not wanted.
  stream.on('error', () => {})
  stream.resume()
  stream.end(bytes)
  await once(stream, 'close')
  session.close()
  return status
}

function frame(message: Uint8Array, o: { flag?: number; length?: number } = {}): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(o.flag ?? 0, 0)
  head.writeUInt32BE(o.length ?? message.byteLength, 1)
  return Buffer.concat([head, message])
}

await t.test('gRPC frames that lie are refused, whatever they lie about', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  const message = encodeInferRequest({ modelName: 'ens_chain', inputs: [row('X')] })
  const SIZE = message.byteLength
  t.same(await sendFrames(t, serving, frame(message)), { code: '0', text: '' }, 'a true frame')
  const lies: Readonly<Record<string, Lie>> = {
    'no frame at all': { code: 3, bytes: new Uint8Array(0) },
    'half a frame header': { code: 3, bytes: frame(message).subarray(0, 3) },
    'fewer bytes than announced': { code: 3, bytes: frame(message, { length: SIZE + 1 }) },
    'more bytes than announced': { code: 3, bytes: frame(message, { length: SIZE - 1 }) },
    'two messages': { code: 3, bytes: Buffer.concat([frame(message), frame(message)]) },
    'more than a message may have': { code: 8, bytes: frame(message, { length: 2 ** 32 - 1 }) },
    'an unknown flag': { code: 3, bytes: frame(message, { flag: 2 }) },
    'compressed, in no named way': { code: 3, bytes: frame(message, { flag: 1 }) },
    // What gRPC's own specification wants for it.
    'compressed, but it is not': {
      code: 13,
      bytes: frame(message, { flag: 1 }),
      headers: { 'grpc-encoding': 'gzip' },
    },
    'compressed in an unknown way': {
      code: 12,
      bytes: frame(message, { flag: 1 }),
      headers: { 'grpc-encoding': 'zap' },
    },
    'a timeout that is none': {
      code: 3,
      bytes: frame(message),
      headers: { 'grpc-timeout': 'soon' },
    },
  }
  for (const [what, { code, bytes, headers }] of Object.entries(lies)) {
    t.match(await sendFrames(t, serving, bytes, headers), { code: String(code), text: /./ }, what)
  }
  await servesRightBytes(t, serving)
})
