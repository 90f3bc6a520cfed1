import * as fc from 'fast-check'
import t from 'tap'
import { ErrorCode } from './error-code.ts'
import { PREFACE } from './frames.ts'
import { encodeFields } from './hpack/encoder.ts'
import type { ServerStream } from './stream.ts'
import {
  ACK,
  bodyOf,
  data,
  EMPTY_SETTINGS,
  goawayOf,
  keep,
  ping,
  RawClient,
  REQUEST,
  REQUEST_FIELDS,
  request,
  reset,
  resetsOf,
  type SeenFrame,
  settings,
  toFrame,
  uint32,
  widen,
} from './testing/raw-client.ts'

const HEADERS = encodeFields([[':status', '200']])
const TRAILERS = encodeFields([['grpc-status', '0']])
/** Answers a request at once. */
function answerAtOnce(stream: ServerStream): void {
  keep(stream)
  stream.end(HEADERS)
}

function bytesOf(frames: readonly SeenFrame[], id: number): number {
  return frames
    .filter((frame) => frame.type === 0 && frame.id === id)
    .reduce((sum, { payload }) => sum + payload.byteLength, 0)
}

await t.test('a connection begins with settings and a window of its own', async (t) => {
  const client = new RawClient()
  client.open()
  const frames = await client.seen()
  t.same(
    frames.map(({ type, flags, id }) => [type, flags, id]),
    [
      [4, 0, 0],
      [8, 0, 0],
      [4, 1, 0],
    ],
  )
  t.equal(frames[1]?.payload.readUInt32BE(0), 2 ** 20 - 65_535)
})

await t.test('an answer goes out in one write, with its headers and trailers', async (t) => {
  const client = new RawClient()
  client.open(request(1), data(1, Buffer.from('abc'), 1))
  const frames = await client.seen()
  t.equal(client.writes, 1)
  t.same(
    frames.slice(3).map(({ type, flags, id }) => [type, flags, id]),
    [
      [1, 4, 1],
      [0, 0, 1],
      [0, 0, 1],
      [1, 5, 1],
    ],
  )
  t.equal(bodyOf(frames, 1), 'abchello')
  t.equal(client.connection.streamCount, 0)
})

await t.test('however the bytes of a client are cut, they mean the same', async (t) => {
  const long = [...REQUEST_FIELDS, ['long', 'x'.repeat(500)]] as const
  const block = Buffer.from(encodeFields(long))
  const padded = toFrame({
    type: 0,
    flags: 9,
    id: 3,
    payload: Buffer.concat([Buffer.of(4), Buffer.from('padded'), Buffer.alloc(4)]),
  })
  const bytes = Buffer.concat([
    PREFACE,
    EMPTY_SETTINGS,
    request(1),
    data(1, Buffer.from('one'), 1),
    toFrame({
      type: 1,
      flags: 0x28,
      id: 3,
      payload: Buffer.concat([
        Buffer.of(1),
        uint32(0),
        Buffer.of(9),
        block.subarray(0, 100),
        Buffer.of(0),
      ]),
    }),
    toFrame({ type: 9, id: 3, payload: block.subarray(100, 300) }),
    toFrame({ type: 9, flags: 4, id: 3, payload: block.subarray(300) }),
    toFrame({ type: 99, payload: Buffer.alloc(30) }),
    data(3, Buffer.alloc(0)),
    padded,
    ping,
  ])
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), async (sizes) => {
      const client = new RawClient()
      for (let at = 0, i = 0; at < bytes.byteLength; i += 1) {
        const size = sizes[i % sizes.length] ?? 1
        client.send(bytes.subarray(at, at + size))
        at += size
      }
      const frames = await client.seen()
      t.equal(bodyOf(frames, 1), 'onehello')
      t.equal(bodyOf(frames, 3), 'paddedhello')
      t.equal(frames.filter(({ type }) => type === 6).length, 1)
      return client.streams[1]?.headers['long'] === 'x'.repeat(500)
    }),
    { numRuns: 30, examples: [[[1]], [[60]]] },
  )
})

await t.test('bodies go as far as the windows allow, and in turns', async (t) => {
  const closed: number[] = []
  const client = new RawClient({
    serve: (stream) => {
      stream.handler = { data: () => {}, ended: () => {}, closed: () => closed.push(stream.id) }
      stream.respond(HEADERS)
      stream.write(Buffer.alloc(100_000))
      stream.end(TRAILERS)
    },
  })
  client.open(settings([4, 40_000]), request(1, 5), request(3, 5))
  let frames = await client.seen()
  t.equal(bytesOf(frames, 1) + bytesOf(frames, 3), 65_535, 'the window of the connection')
  const turns = frames.filter(({ type }) => type === 0).map(({ id }) => id)
  t.same(turns, [1, 3, 1, 3], 'each in its turn')
  client.send(widen(0, 2 ** 20))
  frames = await client.seen()
  t.equal(bytesOf(frames, 1) + bytesOf(frames, 3), 80_000 - 65_535, 'the windows of the streams')
  client.send(widen(3, 1_000_000))
  frames = await client.seen()
  t.equal(bytesOf(frames, 3), 60_000)
  t.same(closed, [3])
  // A change of the setting changes the windows of open streams, below 0 too.
  client.send(settings([4, 10_000]), widen(1, 30_000))
  t.equal(bytesOf(await client.seen(), 1), 0)
  client.send(settings([4, 2 ** 20]))
  frames = await client.seen()
  t.equal(bytesOf(frames, 1), 60_000)
  t.equal(frames.at(-1)?.flags, 5, 'trailers end the stream')
  t.same(closed, [3, 1])
})

await t.test('larger frames are sent to who takes them', async (t) => {
  const client = new RawClient({
    serve: (stream) => {
      keep(stream)
      stream.respond(HEADERS)
      stream.write(Buffer.alloc(60_000))
    },
  })
  client.open(settings([5, 50_000]), request(1, 5))
  const sizes = (await client.seen())
    .filter(({ type }) => type === 0)
    .map((it) => it.payload.byteLength)
  t.same(sizes, [50_000, 10_000])
})

await t.test('headers that fill more than a frame are continued', async (t) => {
  const text = 'x'.repeat(40_000)
  const client = new RawClient({
    serve: (stream) => {
      keep(stream)
      stream.end(
        encodeFields([
          [':status', '200'],
          ['long', text],
        ]),
      )
    },
  })
  client.open(request(1, 5))
  const frames = (await client.seen()).slice(3)
  t.same(
    frames.map(({ type, flags }) => [type, flags]),
    [
      [1, 1],
      [9, 0],
      [9, 4],
    ],
  )
})

await t.test(
  'a write is taken when the socket has taken it, and never once the stream is over',
  async (t) => {
    const taken: string[] = []
    const client = new RawClient({ serve: keep })
    client.open(request(1, 5), request(3, 5))
    await client.seen()
    client.isStuck = true
    for (const stream of client.streams) {
      stream.respond(HEADERS)
      stream.write(Buffer.alloc(10), () => taken.push(`small of ${stream.id}`))
      stream.write(Buffer.alloc(100_000), () => taken.push(`large of ${stream.id}`))
    }
    await client.seen()
    t.same(taken, [])
    client.take()
    await client.seen()
    t.same(taken, ['small of 1', 'small of 3'])
    client.isStuck = false
    client.send(reset(1), widen(0, 2 ** 20), widen(3, 2 ** 20))
    client.take()
    await client.seen()
    t.same(taken.slice(2), ['large of 3'])
  },
)

await t.test('a client that may send is told so, but not while its stream waits', async (t) => {
  const client = new RawClient({ serve: keep, windowBytes: 100_000 })
  client.open(ACK, request(1), request(3))
  await client.seen()
  client.streams[0]?.pause()
  const piece = Buffer.alloc(16_000)
  const send = async (id: number) => {
    client.send(...Array.from({ length: 4 }, () => data(id, piece)))
    return (await client.seen()).map(({ type, id, payload }) => [type, id, payload.readUInt32BE(0)])
  }
  t.same(await send(1), [[8, 0, 64_000]], 'of the connection alone')
  t.same(await send(3), [
    [8, 0, 64_000],
    [8, 3, 64_000],
  ])
  client.streams[0]?.resume()
  t.match(await client.seen(), [{ type: 8, id: 1 }])
})

await t.test('a client that sends more than it may is refused', async (t) => {
  const client = new RawClient({ serve: keep, windowBytes: 100_000, maxConcurrentStreams: 3 })
  client.open(ACK, request(1), request(3))
  for (const stream of client.streams) stream.pause()
  client.send(...Array.from({ length: 7 }, () => data(1, Buffer.alloc(16_000))))
  t.same(resetsOf(await client.seen()), [[1, ErrorCode.flowControlError]])
  t.notOk(client.isEnded, 'and may go on with others')
})

await t.test(
  'before it has confirmed our settings a client may send what the standard allows',
  async (t) => {
    const client = new RawClient({ serve: keep, windowBytes: 10_000 })
    client.open(request(1))
    client.streams[0]?.pause()
    client.send(...Array.from({ length: 4 }, () => data(1, Buffer.alloc(16_000))))
    t.same(resetsOf(await client.seen()), [])
    client.send(ACK, data(1, Buffer.alloc(1)))
    t.same(resetsOf(await client.seen()), [[1, ErrorCode.flowControlError]])
  },
)

await t.test(
  'streams beyond the bound are refused, and those whose answers wait count',
  async (t) => {
    const client = new RawClient({ serve: answerAtOnce, maxConcurrentStreams: 2 })
    client.open()
    await client.seen()
    client.isStuck = true
    client.send(request(1, 5), request(3, 5), request(5, 5))
    client.take()
    client.isStuck = false
    t.same(resetsOf(await client.seen()), [[5, ErrorCode.refusedStream]])
    client.send(request(7, 5))
    t.same(resetsOf(await client.seen()), [])
  },
)

await t.test('an answer before the end of a request tells its client to stop', async (t) => {
  const client = new RawClient({ serve: answerAtOnce })
  client.open(request(1))
  const frames = await client.seen()
  t.same(resetsOf(frames), [[1, ErrorCode.noError]])
  // Frames that were on their way are no fault.
  client.send(
    data(1, Buffer.alloc(10)),
    data(1, Buffer.alloc(10), 1),
    request(1, 5, TRAILERS),
    widen(1, 5),
    reset(1),
  )
  t.same(await client.seen(), [])
})

await t.test(
  'fields that come twice are joined, but for those that say who and what',
  async (t) => {
    const twice = ['x', 'cookie', 'authorization', 'content-type', '__proto__'] as const
    const client = new RawClient({ serve: keep })
    client.open(
      request(
        1,
        5,
        encodeFields([
          ...REQUEST_FIELDS.slice(0, 4),
          ...[1, 2].flatMap((n) => twice.map((name) => [name, `${n}`] as const)),
        ]),
      ),
    )
    const headers = client.streams[0]?.headers
    t.same(
      twice.map((name) => headers?.[name]),
      ['1, 2', '1; 2', '1', '1', '1, 2'],
    )
  },
)

await t.test('a body has the length that was said', async (t) => {
  for (const [length, isRight] of [
    [5, true],
    [4, false],
    [6, false],
  ] as const) {
    const client = new RawClient()
    client.open(
      request(1, 4, encodeFields([...REQUEST_FIELDS, ['content-length', String(length)]])),
      data(1, Buffer.from('hello'), 1),
    )
    t.same(resetsOf(await client.seen()), isRight ? [] : [[1, ErrorCode.protocolError]])
  }
})

await t.test('larger headers than the bound are refused once it is known', async (t) => {
  const large = encodeFields([...REQUEST_FIELDS, ['large', 'x'.repeat(9000)]])
  const client = new RawClient({ serve: keep, maxHeaderListBytes: 8192 })
  client.open(request(1, 5, large))
  t.ok((client.streams[0]?.headerBytes ?? 0) > 8192, 'a client that does not know it gets a stream')
  client.send(ACK, request(3, 5, large))
  t.same(resetsOf(await client.seen()), [[3, ErrorCode.enhanceYourCalm]])
})

await t.test('a stop is told twice, and what comes between is served', async (t) => {
  const client = new RawClient()
  client.open(request(1))
  await client.seen()
  client.connection.announceStop()
  let answered = false
  client.connection.ping(() => (answered = true))
  const notice = await client.seen()
  t.same(goawayOf(notice), { lastId: 2 ** 31 - 1, code: 0 })
  client.send(request(3, 5), toFrame({ type: 6, flags: 1, payload: Buffer.alloc(8) }))
  t.ok(answered)
  client.connection.stop()
  client.send(request(5, 5))
  const frames = await client.seen()
  t.same(goawayOf(frames), { lastId: 3, code: 0 })
  t.equal(bodyOf(frames, 3), 'hello')
  t.same(resetsOf(frames), [[5, ErrorCode.refusedStream]])
  t.notOk(client.isEnded, 'not before its last stream')
  client.send(data(1, Buffer.from('late '), 1))
  t.equal(bodyOf(await client.seen(), 1), 'late hello')
  t.ok(client.isEnded)
  client.send(ping, request(7, 5))
  t.same(await client.seen(), [], 'no frame goes out behind the end')
})

await t.test('a client that says goodbye is answered to the end', async (t) => {
  const client = new RawClient()
  client.open(request(1), toFrame({ type: 7, payload: Buffer.alloc(8) }))
  await client.seen()
  t.notOk(client.isEnded)
  client.send(data(1, Buffer.alloc(0), 1))
  t.equal(bodyOf(await client.seen(), 1), 'hello')
  t.ok(client.isEnded)
})

await t.test('each stream hears of its end, once, whatever ends it', async (t) => {
  const closed: number[] = []
  const client = new RawClient({
    serve: (stream) => {
      stream.handler = { data: () => {}, ended: () => {}, closed: () => closed.push(stream.id) }
      if (stream.id >= 7) stream.end(HEADERS)
    },
  })
  client.open(request(1), request(3), request(5), reset(1))
  client.streams[1]?.reset(ErrorCode.cancel)
  t.same(closed, [1, 3])
  client.isStuck = true
  client.send(request(7), request(9))
  await client.seen()
  client.send(request(11))
  t.same(closed, [1, 3], 'not before its answer is taken')
  client.streams[4]?.reset(ErrorCode.cancel)
  t.same(closed, [1, 3, 9], 'or it is given up')
  client.connection.destroy()
  t.same(
    closed.toSorted((a, b) => a - b),
    [1, 3, 5, 7, 9, 11],
  )
  for (const stream of client.streams) stream.write(REQUEST)
  client.take()
  await client.seen()
  t.equal(closed.length, 6)
})
