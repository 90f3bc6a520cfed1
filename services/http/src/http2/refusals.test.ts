import { ok } from 'node:assert/strict'
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
  REQUEST_FIELDS,
  request,
  reset,
  resetsOf,
  settings,
  toFrame,
  widen,
} from './testing/raw-client.ts'

const TRAILERS = encodeFields([['grpc-status', '0']])

await t.test('requests that are none are reset, alone', async (t) => {
  const cases: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
    ['without a method', REQUEST_FIELDS.slice(1)],
    ['without a path', REQUEST_FIELDS.filter(([name]) => name !== ':path')],
    ['an empty path', REQUEST_FIELDS.map(([n, v]) => [n, n === ':path' ? '' : v] as const)],
    ['two paths', [[':path', '/'], ...REQUEST_FIELDS]],
    ['an unknown pseudo-header', [[':what', '/'], ...REQUEST_FIELDS]],
    ['a pseudo-header behind others', [...REQUEST_FIELDS.slice(1), [':method', 'POST']]],
    ['capital letters', [...REQUEST_FIELDS, ['Large', '1']]],
    ['an empty name', [...REQUEST_FIELDS, ['', '1']]],
    ['HTTP/1', [...REQUEST_FIELDS, ['connection', 'close']]],
    ['two hosts', [...REQUEST_FIELDS, ['host', 'a'], ['host', 'b']]],
    ['another te', [...REQUEST_FIELDS, ['te', 'gzip']]],
    ['a line in a value', [...REQUEST_FIELDS, ['a', 'b\r\nc: d']]],
    ['a NUL in a value', [...REQUEST_FIELDS, ['a', 'b\0']]],
    ['a length that is none', [...REQUEST_FIELDS, ['content-length', '-1']]],
    ['a length that is wrong', [...REQUEST_FIELDS, ['content-length', '1']]],
  ]
  const client = new RawClient()
  client.open()
  await client.seen()
  for (const [i, [name, fields]] of cases.entries()) {
    client.send(request(2 * i + 1, 5, encodeFields(fields)))
    t.same(resetsOf(await client.seen()), [[2 * i + 1, ErrorCode.protocolError]], name)
  }
  t.equal(client.streams.length, 0)
  client.send(request(99, 5))
  t.equal(bodyOf(await client.seen(), 99), 'hello')
})

/** Everything that ends a connection, with the reason that its client is told. */
const FATAL: readonly (readonly [string, number, readonly Uint8Array[]])[] = [
  ['a stream of the server', 1, [request(2, 5)]],
  ['a stream that is too old', 1, [request(5, 5), request(3, 5)]],
  ['headers without a stream', 1, [request(0, 5)]],
  ['DATA without a stream', 1, [data(0, Buffer.alloc(1))]],
  ['DATA of an idle stream', 1, [data(7, Buffer.alloc(1))]],
  ['a window of an idle stream', 1, [widen(7, 1)]],
  ['a reset of an idle stream', 1, [reset(7)]],
  ['a window that grows by 0', 1, [widen(0, 0)]],
  ['a window that is too large', 3, [widen(0, 2 ** 31 - 1)]],
  ['a setting of a window that is too large', 3, [settings([4, 2 ** 31])]],
  ['a frame size that is too small', 1, [settings([5, 16_383])]],
  ['push that is neither on nor off', 1, [settings([2, 2])]],
  ['half a setting', 6, [toFrame({ type: 4, payload: Buffer.alloc(5) })]],
  ['settings on a stream', 1, [toFrame({ type: 4, id: 1 })]],
  ['a ping of 7 bytes', 6, [toFrame({ type: 6, payload: Buffer.alloc(7) })]],
  ['a frame that is too large', 6, [data(0, Buffer.alloc(16_385))]],
  ['a push', 1, [toFrame({ type: 5, id: 1, payload: Buffer.alloc(4) })]],
  ['a continuation of nothing', 1, [toFrame({ type: 9, id: 1, flags: 4 })]],
  ['a frame within headers', 1, [request(1, 1), ping]],
  [
    'padding of more than there is',
    1,
    [request(1), toFrame({ type: 0, flags: 8, id: 1, payload: Buffer.of(9, 1) })],
  ],
  ['headers that cannot be decoded', 9, [request(1, 5, Buffer.of(0xff))]],
  ['headers behind the end', 5, [request(1, 5), reset(1), request(1, 5)]],
]

await t.test('what breaks the protocol ends the connection, with the reason', async (t) => {
  for (const [name, code, frames] of FATAL) {
    const client = new RawClient({ serve: keep })
    client.open(...frames)
    t.equal(goawayOf(await client.seen())?.code, code, name)
    t.ok(client.isEnded, name)
    client.send(ping)
    t.same(await client.seen(), [], 'nothing more is read')
  }
})

await t.test('what is no HTTP/2 is refused at once', async (t) => {
  for (const text of ['GET / HTTP/1.1\r\n', 'X', 'PRI * HTTP/2.0\r\n\r\nXX']) {
    const client = new RawClient()
    client.send(Buffer.from(text))
    t.equal(goawayOf(await client.seen())?.code, ErrorCode.protocolError, text)
  }
  const late = new RawClient()
  late.send(PREFACE, ping)
  t.equal(goawayOf(await late.seen())?.code, ErrorCode.protocolError, 'without settings')
})

/** A client may repeat each of these for ever. */
const FLOODS: readonly (readonly [string, (i: number) => Buffer, readonly Uint8Array[]])[] = [
  ['pings', () => ping, []],
  ['settings', () => EMPTY_SETTINGS, []],
  ['confirmations', () => ACK, []],
  ['empty DATA', () => data(1, Buffer.alloc(0)), [request(1)]],
  ['windows', () => widen(0, 1), []],
  ['windows of a stream', () => widen(1, 1), [request(1)]],
  ['priorities', () => toFrame({ type: 2, id: 1, payload: Buffer.alloc(5) }), []],
  ['unknown frames', () => toFrame({ type: 200 }), []],
  ['resets of what is over', () => reset(1), [request(1), reset(1)]],
  ['resets', (i) => Buffer.concat([request(2 * i + 1), reset(2 * i + 1)]), []],
  ['requests that are none', (i) => request(2 * i + 1, 5, TRAILERS), []],
  ['continuations', () => toFrame({ type: 9, id: 1 }), [request(1, 0)]],
  [
    'long continuations',
    () => toFrame({ type: 9, id: 1, payload: Buffer.alloc(16_000) }),
    [request(1, 0)],
  ],
]

await t.test('a flood of anything ends the connection', async (t) => {
  for (const [name, make, first] of FLOODS) {
    const client = new RawClient({ serve: keep })
    client.open(...first)
    let sent = 0
    while (goawayOf(await client.seen()) === undefined && sent < 20_000) {
      client.send(...Array.from({ length: 500 }, (_, i) => make(sent + i)))
      sent += 500
    }
    t.ok(sent < 20_000, `${name}: ${sent}`)
    t.ok(client.isEnded, name)
  }
})

/** A change of windows, and one byte of a body for it: that many frames bring something. */
function paidChange(i: number): readonly Buffer[] {
  return [settings([4, i % 2]), data(1, Buffer.alloc(1))]
}

/** Answers more than any window takes. */
function answerLarge(stream: ServerStream): void {
  keep(stream)
  stream.respond(TRAILERS)
  stream.write(Buffer.alloc(2 ** 20))
}

const STREAMS = 100
const OPEN = Array.from({ length: STREAMS }, (_, i) => request(2 * i + 1))

await t.test('what moves the windows of many streams is paid for by bytes', async (t) => {
  const client = new RawClient({ serve: keep })
  client.open(...OPEN)
  let sent = 0
  while (goawayOf(await client.seen()) === undefined && sent < 20_000) {
    client.send(...Array.from({ length: 500 }, (_, i) => paidChange(i)).flat())
    sent += 500
  }
  t.ok(sent <= 3000, `${sent} changes`)
  t.equal(client.isEnded, true)
})

await t.test('windows of one byte pay for nothing', async (t) => {
  const client = new RawClient({ serve: answerLarge })
  client.open(settings([4, 0]), request(1, 5))
  let sent = 0
  for (; !client.isEnded && sent < 5000; sent += 1) {
    client.send(widen(1, 1), ping, ping, ping)
    await client.seen()
  }
  t.ok(sent < 5000, `${sent} windows`)
})

/** Frames of a client that has its requests open. */
const anyFrames = fc.array(
  fc.record({
    kind: fc.constantFrom('data', 'settings', 'widen', 'ping'),
    stream: fc.nat(STREAMS - 1).map((i) => 2 * i + 1),
    size: fc.oneof(fc.constantFrom(0, 1), fc.nat(2000)),
    times: fc.nat(3000),
  }),
  { maxLength: 12 },
)

await t.test('whatever is sent, the windows that are moved are bounded by the bytes', async () => {
  await fc.assert(
    fc.asyncProperty(anyFrames, async (floods) => {
      const client = new RawClient({ serve: keep, windowBytes: 2 ** 30 })
      client.open(...OPEN)
      let bytes = 0
      let moved = 0
      for (const { kind, stream, size, times } of floods) {
        for (let i = 0; i < times && client.connection.streamCount === STREAMS; i += 1) {
          if (kind === 'data') client.send(data(stream, Buffer.alloc(size)))
          else if (kind === 'widen') client.send(widen(stream, 1))
          else if (kind === 'ping') client.send(ping)
          else client.send(settings([4, i % 2]))
          bytes += kind === 'data' ? size : 0
          moved += kind === 'settings' ? STREAMS : 0
        }
        await client.seen()
      }
      ok(moved <= 16 * (11_000 + bytes / 256), `${moved} windows for ${bytes} bytes`)
    }),
    { numRuns: 50 },
  )
})

await t.test('who takes no answers and asks on is dropped', async (t) => {
  const client = new RawClient()
  client.open()
  client.isStuck = true
  for (let i = 0; i < 40 && !client.isDestroyed; i += 1) {
    // So that the flood itself is none.
    client.now += 1000
    client.send(...Array.from({ length: 500 }, () => ping))
  }
  t.ok(client.isDestroyed)
})

await t.test('frames may come for a stream that ended long ago', async (t) => {
  const client = new RawClient()
  client.open(request(1))
  client.streams[0]?.end(TRAILERS)
  for (let id = 3; id < 1003; id += 2) {
    client.send(request(id, 5))
    if (id % 99 === 0) await client.seen()
  }
  await client.seen()
  client.send(data(1, Buffer.alloc(1)), data(1, Buffer.alloc(1)), request(1, 5, TRAILERS))
  const frames = await client.seen()
  t.same(resetsOf(frames), [[1, ErrorCode.streamClosed]])
  t.equal(goawayOf(frames), undefined)
})

await t.test('a client that works may reset and ping for ever', async (t) => {
  const client = new RawClient({ resetBurst: 10, resetsPerSecond: 10 })
  client.open(settings([4, 2 ** 30]), widen(0, 2 ** 30))
  for (let i = 0; i < 3000; i += 1) {
    client.now += 100
    const id = 4 * i + 1
    client.send(request(id, 5), ping, widen(0, 1), request(id + 2), reset(id + 2))
    if (i % 100 === 0) await client.seen()
  }
  t.equal(goawayOf(await client.seen()), undefined)
})
