import * as fc from 'fast-check'
import t from 'tap'
import { HEAD_BYTES, OWN_BYTES, READ_BYTES } from '../sockets/placed-reader.ts'
import { type PlaceMessage, WireParser } from './wire-parser.ts'

const MAX_PAYLOAD = 64 * 1024
/** Most bytes of a message that may have headers beside it. */
const MOST_BYTES = MAX_PAYLOAD - 2 * HEAD_BYTES

/** A parser whose subscription 1 reads messages behind their first bytes, and 2 drops them. @returns with all that it heard. */
function open(headBytes = 0, readBytes = READ_BYTES) {
  const heard: string[] = []
  const parser = new WireParser(
    {
      info: (json) => heard.push(`info ${json}`),
      ping: () => heard.push('ping'),
      pong: () => heard.push('pong'),
      refused: (text) => heard.push(`refused ${text}`),
      placeOf: (sid) => {
        if (sid > 2) throw new Error(`sid ${sid}`)
        return sid === 1 ? place : () => undefined
      },
    },
    readBytes,
  )
  const place: PlaceMessage = (head, { size, subject, reply = '', isNoResponder }) => {
    const skipped = Math.min(head.byteLength, headBytes)
    const first = Buffer.from(head).toString('latin1', 0, skipped)
    const into = new Uint8Array(size - skipped)
    const arrived = (): void => {
      const text = `${first}${Buffer.from(into).toString('latin1')}`
      heard.push(`${subject} ${reply}${isNoResponder ? '!' : ''} ${text}`)
    }
    return { into, arrived }
  }
  parser.maxPayload = MAX_PAYLOAD
  return { parser, heard }
}

/** Bytes that a server says, and what of them is heard. */
interface Said {
  readonly bytes: Buffer
  readonly heard: string | undefined
}

/** @param headers - '' for none. */
function message(sid: number, size: number, reply: string, headers = ''): Said {
  const payload = Buffer.from(Array.from({ length: size }, (_, i) => (i * 7919) % 251))
  const to = `a.ü ${sid} ${reply === '' ? '' : `${reply} `}`
  const sizes = headers === '' ? `${size}` : `${headers.length} ${headers.length + size}`
  const line = `${headers === '' ? '' : 'H'}MSG ${to}${sizes}\r\n`
  const bytes = Buffer.concat([Buffer.from(line + headers), payload, Buffer.from('\r\n')])
  const isHeard = sid === 1 && headers.length <= HEAD_BYTES
  const isNoResponder = size === 0 && headers.startsWith('NATS/1.0 503')
  const text = `a.ü ${reply}${isNoResponder ? '!' : ''} ${payload.toString('latin1')}`
  return { bytes, heard: isHeard ? text : undefined }
}

const anySaid = fc.oneof(
  fc.constantFrom(
    { bytes: Buffer.from('PING\r\n'), heard: 'ping' },
    { bytes: Buffer.from('PONG\r\n'), heard: 'pong' },
    { bytes: Buffer.from('+OK\r\n'), heard: undefined },
    { bytes: Buffer.from('INFO {"é":1}\r\n'), heard: 'info {"é":1}' },
    { bytes: Buffer.from("-ERR 'Slow Consumer'\r\n"), heard: 'refused Slow Consumer' },
  ),
  fc
    .tuple(
      fc.constantFrom(1, 2),
      fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 3 * HEAD_BYTES }), fc.nat({ max: MOST_BYTES })),
      fc.constantFrom('', 'r'),
      fc.constantFrom(
        '',
        'NATS/1.0 503\r\n\r\n',
        'NATS/1.0\r\na: b\r\n\r\n',
        `NATS/1.0\r\na: ${'b'.repeat(HEAD_BYTES)}\r\n\r\n`,
      ),
    )
    .map((args) => message(...args)),
)

/** Reads as a socket does: never more than there is space for. */
function read(parser: WireParser, bytes: Uint8Array, pieces: readonly number[]): void {
  let turn = 0
  for (let at = 0; at < bytes.byteLength; turn++) {
    const target = parser.reader.target()
    const piece = pieces[turn % pieces.length] ?? 1
    const size = Math.min(target.byteLength, bytes.byteLength - at, piece)
    target.set(bytes.subarray(at, at + size))
    at += size
    parser.reader.took(size)
  }
}

await t.test('bytes mean the same in whatever pieces they come', async () => {
  const pieces = fc.array(
    fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 1e5 })),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  fc.assert(
    fc.property(
      fc.array(anySaid, { maxLength: 8 }),
      pieces,
      fc.nat({ max: HEAD_BYTES }),
      fc.boolean(),
      fc.constantFrom(READ_BYTES, OWN_BYTES),
      (said, sizes, headBytes, isTls, readBytes) => {
        const { parser, heard } = open(headBytes, readBytes)
        const bytes = Buffer.concat(said.map((one) => one.bytes))
        if (isTls) parser.reader.take(bytes)
        else read(parser, bytes, sizes)
        const want = said.flatMap((one) => one.heard ?? [])
        return JSON.stringify(heard) === JSON.stringify(want) && parser.reader.isEmpty
      },
    ),
    { numRuns: 150 },
  )
})

await t.test('a large message is read to its place, all but its first bytes', async (t) => {
  const { parser, heard } = open()
  const { bytes, heard: want } = message(1, 60_000, '')
  const target = parser.reader.target()
  t.ok(target.byteLength <= 4096, 'no more is copied')
  target.set(bytes.subarray(0, 1000))
  parser.reader.took(1000)
  const line = Buffer.byteLength('MSG a.ü 1 60000\r\n')
  const place = parser.reader.target()
  t.equal(place.byteLength, 60_000 - (1000 - line), 'the rest of it, at once')
  place.set(bytes.subarray(1000, 1000 + place.byteLength))
  parser.reader.took(place.byteLength)
  t.same(heard, [want])
  parser.reader.take(Buffer.from('\r\nPING\r\n'))
  t.equal(heard[1], 'ping')
})

await t.test('what is not the protocol is an error, and asks for no memory', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['HTTP/1.1 400 Bad Request\r\n', /a line is none of a NATS server/],
    ['PING\n', /a line ends oddly/],
    ['\n', /a line ends oddly/],
    ['x'.repeat(70_000), /a line has no end/],
    ['MSG a 1 65537\r\n', /a message has 65537 bytes, want 0 to 65536/],
    ['MSG a 1 -1\r\n', /a message has no size or subscription/],
    ['MSG a 1 1e3\r\n', /no size/],
    ['MSG a 1 99999999999999999999\r\n', /no size/],
    ['MSG a 1\r\n', /no size/],
    ['MSG a b c d 1\r\n', /no size/],
    ['MSG a 3 1\r\n', /sid 3/],
    ['HMSG a 1 12 65537\r\n', /a message has 65537 bytes, want 12 to 65536/],
    ['HMSG a 1 13 12\r\n', /a message has 12 bytes, want 13 to 65536/],
    ['HMSG a 1 12\r\n', /no size/],
    ['HMSG a 1 r x 12\r\n', /no size of its headers/],
    ['MSG a 1 1\r\nabc\r\n', /a message is longer than it says/],
    ['MSG a 2 0\r\nPING\r\n', /a message is longer than it says/],
  ]
  for (const [text, message] of cases) {
    const { parser, heard } = open()
    t.throws(() => parser.reader.take(Buffer.from(text)), { message }, text.slice(0, 40))
    t.ok(heard.length <= 1)
  }
})
