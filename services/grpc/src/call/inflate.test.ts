import { once } from 'node:events'
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deflateSync, gzipSync } from 'node:zlib'
import { encodeInferRequest } from '@tutti/protocol'
import { Admission } from '@tutti/serving'
import { echo, RecordingControl } from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import { openTestServer } from '../testing/test-server.ts'
import { type InflateOptions, inflateMessage } from './inflate.ts'

t.setTimeout(60_000)

const MEBIBYTE = 1024 * 1024
const INFER = '/inference.GRPCInferenceService/ModelInfer'
const SMALL_CALLS = [
  'ServerMetadata',
  'ModelReady',
  'ModelMetadata',
  'ModelConfig',
  'ModelStatistics',
  'RepositoryIndex',
  'RepositoryModelUnload',
].map((name) => `/inference.GRPCInferenceService/${name}`)
const WAYS = { gzip: gzipSync, deflate: deflateSync } as const

/** An admission that keeps the largest number of bytes that it has counted. */
class WatchedAdmission extends Admission {
  mostBytes = 0

  override count(bytes: number): void {
    super.count(bytes)
    this.mostBytes = Math.max(this.mostBytes, this.bytes)
  }
}

function compressedFrame(message: Uint8Array, way: keyof typeof WAYS = 'gzip'): Buffer {
  const packed = WAYS[way](message)
  const header = Buffer.from([1, 0, 0, 0, 0])
  header.writeUInt32BE(packed.byteLength, 1)
  return Buffer.concat([header, packed])
}

function connectRaw(t: Test, address: string): ClientHttp2Session {
  const session = connect(`http://${address}`)
  t.teardown(() => session.destroy())
  return session
}

function openCall(session: ClientHttp2Session, path: string, encoding = 'gzip') {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    'grpc-encoding': encoding,
    te: 'trailers',
  })
  stream.on('error', () => {})
  return stream
}

/** The status and the message of a call. */
async function send(session: ClientHttp2Session, path: string, body: Buffer, encoding = 'gzip') {
  const stream = openCall(session, path, encoding)
  const answer: IncomingHttpHeaders = {}
  stream.on('response', (headers) => Object.assign(answer, headers))
  stream.on('trailers', (headers) => Object.assign(answer, headers))
  stream.resume()
  stream.end(body)
  await once(stream, 'close')
  return {
    status: String(answer['grpc-status']),
    message: decodeURIComponent(String(answer['grpc-message'] ?? '')),
  }
}

function inflating(bytes: number, o: Partial<InflateOptions> = {}) {
  const charged: number[] = []
  const message = inflateMessage(gzipSync(Buffer.alloc(bytes)), {
    encoding: 'gzip',
    maxBytes: 2 ** 31,
    charge: (piece) => void charged.push(piece),
    ...o,
  })
  return { message, charged }
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0)

await t.test('a message is charged piece by piece while it inflates', async (t) => {
  const { message, charged } = inflating(10 * MEBIBYTE)
  t.equal((await message).byteLength, 10 * MEBIBYTE)
  t.equal(sumOf(charged), 10 * MEBIBYTE)
  t.ok(Math.max(...charged) <= 65_536)
})

await t.test('nothing is inflated after a piece that is refused', async (t) => {
  const limit = new Error('enough')
  let got = 0
  const { message } = inflating(100 * MEBIBYTE, {
    charge: (piece) => {
      got += piece
      if (got > MEBIBYTE) throw limit
    },
  })
  await t.rejects(message, { cause: limit })
  t.ok(got <= MEBIBYTE + 65_536, `${got} bytes`)
})

await t.test('the bound of a message counts inflated bytes, and charges none beyond', async (t) => {
  const { message, charged } = inflating(100 * MEBIBYTE, { maxBytes: MEBIBYTE })
  await t.rejects(message, { reason: 'MESSAGE_TOO_LARGE', message: /larger than 1048576/ })
  t.ok(sumOf(charged) <= MEBIBYTE)
})

await t.test('a message is whole whatever size its end tells', async (t) => {
  // The size that gzip tells is that of the last part.
  for (const sizes of [
    [70_000, 10],
    [10, 70_000],
    [200_000, 0],
    [0, 0],
  ]) {
    const parts = sizes.map((size) => Buffer.alloc(size, 'tensor'))
    const packed = Buffer.concat(parts.map((part) => gzipSync(part)))
    const options = { encoding: 'gzip', maxBytes: MEBIBYTE, charge: () => {} }
    const message = await inflateMessage(packed, options)
    t.ok(message.equals(Buffer.concat(parts)), `parts of ${sizes.join(' and ')} bytes`)
  }
})

/** Bytes that one turn of the loop copies from buffer to buffer at most, while an action goes on. */
async function mostCopied(t: Test, action: () => Promise<unknown>): Promise<number> {
  const { copy } = Buffer.prototype
  let most = 0
  let inTurn = 0
  let turning = setImmediate(function turn() {
    inTurn = 0
    turning = setImmediate(turn)
  })
  Buffer.prototype.copy = function (...args: Parameters<typeof copy>) {
    const copied = copy.apply(this, args)
    inTurn += copied
    most = Math.max(most, inTurn)
    return copied
  }
  t.teardown(() => {
    Buffer.prototype.copy = copy
    clearImmediate(turning)
  })
  await action()
  return most
}

await t.test('a size that is a lie has little copied in one turn', async (t) => {
  const packed = gzipSync(Buffer.alloc(32 * MEBIBYTE))
  const lie = Buffer.from(packed)
  lie.writeUInt32LE(24 * MEBIBYTE, lie.byteLength - 4)
  const options = { encoding: 'gzip', maxBytes: 128 * MEBIBYTE, charge: () => {} }
  // The size that stands at the end is that of the last part.
  for (const message of [lie, Buffer.concat([packed, packed]), packed.subarray(0, -1)]) {
    // A message that does not have the size that it tells fails, but only in the end.
    const most = await mostCopied(t, () => inflateMessage(message, options).catch(() => {}))
    t.ok(most > 0)
    t.ok(most <= 5 * MEBIBYTE, `${most} bytes in one turn`)
  }
})

await t.test('a small message does not hold the memory of its decoder', async (t) => {
  const packed = gzipSync(Buffer.alloc(10))
  const options = { encoding: 'gzip', maxBytes: MEBIBYTE, charge: () => {} }
  const messages = await Promise.all(
    Array.from({ length: 20 }, () => inflateMessage(packed, options)),
  )
  t.ok(new Set(messages.map(({ buffer }) => buffer)).size <= 2, 'they lie in the pool')
})

await t.test(
  'a compressed request is refused as soon as it passes the admitted bytes',
  async (t) => {
    const admission = new WatchedAdmission({ maxBytes: 8 * MEBIBYTE })
    const { address, backend } = await openTestServer(t, { m: { script: echo() } }, { admission })
    const session = connectRaw(t, address)
    const bomb = compressedFrame(Buffer.alloc(100 * MEBIBYTE))
    const answers = await Promise.all([1, 2, 3].map(() => send(session, INFER, bomb)))
    for (const { status, message } of answers) {
      t.equal(status, '8')
      t.match(message, /65536 more would go over, the bound is 8388608|this client have more than/)
    }
    t.ok(admission.mostBytes > 7 * MEBIBYTE, 'pieces are charged as they come')
    t.equal(admission.bytes, 0)
    t.equal(admission.requests, 0)
    t.equal(backend.requests.length, 0)
  },
)

await t.test('inflation ends with its call', async (t) => {
  const admission = new WatchedAdmission()
  const { address } = await openTestServer(t, {}, { admission })
  const session = connectRaw(t, address)
  const stream = openCall(session, INFER)
  stream.end(compressedFrame(Buffer.alloc(200 * MEBIBYTE)))
  while (admission.bytes < 2 * MEBIBYTE) await nextTurn()
  stream.close()
  while (admission.bytes > 0) await nextTurn()
  t.equal(admission.requests, 0)
  t.ok(admission.mostBytes < 200 * MEBIBYTE)
})

await t.test('calls without tensors take 64 KiB, inflated or not', async (t) => {
  const { address, admission, backend } = await openTestServer(t, { m: {} })
  // Without it an unload is refused unread.
  backend.control = new RecordingControl()
  const session = connectRaw(t, address)
  const bomb = compressedFrame(Buffer.alloc(5 * MEBIBYTE))
  for (const path of SMALL_CALLS) {
    const { status, message } = await send(session, path, bomb)
    t.equal(status, '8', path)
    t.match(message, /decompresses to a size larger than 65536/)
  }
  t.equal(admission.requests, 0, 'which take no place among the requests')
})

/** Numbers that are the same in each run. */
function* numbers(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    yield state / 2 ** 32
  }
}

await t.test('whatever is sent compressed, its charges add up to nothing in the end', async (t) => {
  const admission = new WatchedAdmission({ maxBytes: 4 * MEBIBYTE })
  const options = { admission, maxMessageBytes: 3 * MEBIBYTE }
  const { address } = await openTestServer(t, { m: { script: echo() } }, options)
  const session = connectRaw(t, address)
  const random = numbers(7)
  const next = (below: number) => Math.floor((random.next().value ?? 0) * below)
  for (let round = 0; round < 40; round += 1) {
    const calls = Array.from({ length: 1 + next(4) }, () => {
      const way = next(2) === 0 ? 'gzip' : 'deflate'
      const path = next(3) === 0 ? (SMALL_CALLS[next(SMALL_CALLS.length)] ?? '') : INFER
      const body = compressedFrame(generated(next), way)
      const cut = next(4) === 0 ? body.subarray(0, next(body.byteLength)) : body
      return send(session, path, cut, next(8) === 0 ? 'identity' : way)
    })
    const answers = await Promise.all(calls)
    t.notOk(answers.some(({ status }) => status === 'undefined'))
    t.equal(admission.bytes, 0)
    t.equal(admission.requests, 0)
  }
  t.ok(admission.mostBytes <= 4 * MEBIBYTE)
})

/** A request that is well, or zeros of some size. */
function generated(next: (below: number) => number): Uint8Array {
  if (next(2) === 0) return Buffer.alloc(next(2 ** next(24)))
  const data = new Uint8Array(4 * next(500_000))
  const input = { name: 'x', datatype: 'FP32' as const, shape: [data.byteLength / 4], data }
  return encodeInferRequest({ modelName: 'm', inputs: [input] })
}
