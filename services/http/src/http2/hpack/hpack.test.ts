import { once } from 'node:events'
import { connect } from 'node:http2'
import * as fc from 'fast-check'
import t from 'tap'
import { ConnectionError } from '../error-code.ts'
import type { RequestHeaders } from '../request-headers.ts'
import { startPlainServer } from '../testing/plain-server.ts'
import { HpackDecoder } from './decoder.ts'
import { encodeFields } from './encoder.ts'

function decode(decoder: HpackDecoder, hex: string): string[] {
  const { fields } = decoder.decode(Buffer.from(hex.replaceAll(' ', ''), 'hex'), 2 ** 16)
  return fields.map(({ name, value }) => `${name}: ${value}`)
}

const FIRST = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com']
const THIRD = [
  ':method: GET',
  ':scheme: https',
  ':path: /index.html',
  ':authority: www.example.com',
  'custom-key: custom-value',
]

await t.test('the examples of RFC 7541, C.3 and C.4', async (t) => {
  const plain = [
    '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
    '8286 84be 5808 6e6f 2d63 6163 6865',
    '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
  ]
  const huffman = [
    '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
    '8286 84be 5886 a8eb 1064 9cbf',
    '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
  ]
  for (const blocks of [plain, huffman]) {
    const decoder = new HpackDecoder()
    const [first, second, third] = blocks.map((block) => decode(decoder, block))
    t.same(first, FIRST)
    t.same(second, [...FIRST, 'cache-control: no-cache'])
    t.same(third, THIRD)
    t.equal(decoder.changes, 3)
  }
})

await t.test('entries go when there is no more room, and with the size of the table', async (t) => {
  const decoder = new HpackDecoder()
  // A field of 4096 bytes with its own, then another one.
  const large = Buffer.concat([
    Buffer.from('400161', 'hex'),
    Buffer.from('7fe01e', 'hex'),
    Buffer.alloc(4063, 'x'),
  ])
  t.equal(decoder.decode(large, 2 ** 16).listBytes, 4096)
  t.match(decode(decoder, 'be'), [/^a: x{4063}$/])
  t.same(decode(decoder, '40016200'), ['b: '])
  t.same(decode(decoder, 'be'), ['b: '])
  t.throws(() => decode(decoder, 'bf'), { code: 9 })
  t.same(decode(new HpackDecoder(), '203fe11f'), [])
  const emptied = new HpackDecoder()
  decode(emptied, '40016200')
  t.throws(() => decode(emptied, '20be'), { code: 9 })
})

await t.test('what is no block is refused', async (t) => {
  const broken: readonly (readonly [string, string])[] = [
    ['the index 0', '80'],
    ['an index of nothing', 'be'],
    ['a name of nothing', '7f00 00'],
    ['a size that is too large', '3fe2 1f'],
    ['a size behind a field', '8220'],
    ['an endless number', 'ffff ffff ffff ffff ffff 01'],
    ['a number of zeros', 'ff80 8080 8080 8080 8000'],
    ['a number without an end', 'ff80'],
    ['a name without an end', '4005 6161'],
    ['a value that is not there', '4001 61'],
    ['the end of a string within it', '4001 6184 ffff ffff'],
    ['padding of a whole byte', '4001 6182 1fff'],
    ['padding with zeros', '4001 6181 18'],
  ]
  for (const [name, hex] of broken) {
    t.throws(() => decode(new HpackDecoder(), hex), { code: 9 }, name)
  }
})

await t.test('a bomb costs its own bytes only', async (t) => {
  const decoder = new HpackDecoder()
  decode(decoder, `40 01 61 7f e01e ${'78'.repeat(4063)}`)
  const { fields, listBytes } = decoder.decode(Buffer.alloc(60_000, 0xbe), 2 ** 16)
  t.equal(listBytes, 60_000 * 4096)
  t.equal(fields.length, 16)
})

await t.test('any bytes are a block or are refused', async () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), (blocks) => {
      const decoder = new HpackDecoder()
      try {
        for (const block of blocks) decoder.decode(block, 1000)
        return true
      } catch (error) {
        return error instanceof ConnectionError
      }
    }),
    { numRuns: 500 },
  )
})

const name = fc.stringMatching(/^x-[a-z0-9_.-]{0,20}$/)
/** Bytes, but for ends of lines and white space at the ends. */
const value = fc.stringMatching(
  /^(?:[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]{0,80}[\x21-\x7e\x80-\xff])?)?$/,
)

await t.test('what Node encodes is decoded, and the other way round', async (t) => {
  const seen: RequestHeaders[] = []
  const { port } = await startPlainServer(t, {
    serve: (stream) => {
      const { headers } = stream
      seen.push(headers)
      const fields = Object.entries(headers).filter(([name]) => name.startsWith('x-'))
      stream.end(
        encodeFields([[':status', '200'], ...fields.map(([k, v]) => [k, v ?? ''] as const)]),
      )
    },
  })
  const session = connect(`http://127.0.0.1:${port}`)
  t.teardown(() => session.destroy())
  await fc.assert(
    fc.asyncProperty(fc.dictionary(name, value, { maxKeys: 8 }), async (headers) => {
      const asked = { ...headers }
      const stream = session.request(asked, { endStream: true })
      const [answer] = await once(stream, 'response')
      const at = seen.pop() ?? {}
      return Object.entries(asked).every(([key, text]) => at[key] === text && answer[key] === text)
    }),
    { numRuns: 300 },
  )
})
