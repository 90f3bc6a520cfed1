import { deepStrictEqual, ok } from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { encodeFrameHead, type FrameKind, FrameParser } from './direct-frames.ts'
import { answerHandshake, HANDSHAKE_BYTES, openHandshake } from './direct-handshake.ts'

const MAX_BYTES = 100_000

/** A parser that puts every frame together. @returns with what came. */
function open() {
  const heard: [FrameKind, string][] = []
  const parser = new FrameParser((kind, size) => {
    if (size > MAX_BYTES) throw new ServeError('MALFORMED_MESSAGE', 'too large')
    if (kind === 'alive' || kind === 'last') return () => undefined
    return () => {
      const into = new Uint8Array(size)
      const arrived = (): void => void heard.push([kind, Buffer.from(into).toString('latin1')])
      return { into, arrived }
    }
  })
  return { parser, heard }
}

const frame = fc.record({
  kind: fc.constantFrom<FrameKind>('handshake', 'alive', 'message', 'chunk', 'last'),
  size: fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 2000 }), fc.nat({ max: MAX_BYTES })),
})

function bytesOf({ kind, size }: { readonly kind: FrameKind; readonly size: number }): Buffer {
  const bytes = Buffer.from(Array.from({ length: size }, (_, i) => (i * 7919 + size) % 251))
  return Buffer.concat([encodeFrameHead(kind, size), bytes])
}

await t.test('frames come out as they went in, whatever pieces they come in', async (t) => {
  const pieces = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 20 })
  const property = fc.property(fc.array(frame, { maxLength: 6 }), pieces, (frames, sizes) => {
    const { parser, heard } = open()
    const bytes = Buffer.concat(frames.map(bytesOf))
    for (let at = 0, i = 0; at < bytes.byteLength; i += 1) {
      const target = parser.reader.target()
      const left = bytes.byteLength - at
      const size = Math.min(target.byteLength, sizes[i % sizes.length] ?? 1, left)
      target.set(bytes.subarray(at, at + size))
      parser.reader.took(size)
      at += size
    }
    const want = frames.filter(({ kind }) => kind !== 'alive' && kind !== 'last')
    deepStrictEqual(
      heard,
      want.map((one) => [one.kind, bytesOf(one).toString('latin1', 8)]),
    )
    ok(parser.reader.isEmpty)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 200 }))
})

await t.test('other bytes are frames, or refused with a typed error', async (t) => {
  const damage = fc.tuple(frame.map(bytesOf), fc.nat({ max: 7 }), fc.nat({ max: 255 }))
  const damaged = damage.map(([bytes, at, value]) => {
    const copy = Buffer.from(bytes)
    copy[at] = value
    return copy
  })
  const property = fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 500 })), (bytes) => {
    try {
      open().parser.reader.take(bytes)
    } catch (error) {
      ok(error instanceof ServeError && error.reason === 'MALFORMED_MESSAGE', String(error))
    }
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

const KEY = 'k'.repeat(43)

/** Lets a router's end talk to a step's, with what happens on the way. @returns who each took the other for. */
function shake(
  router: ReturnType<typeof openHandshake>,
  step: ReturnType<typeof answerHandshake>,
  change: (bytes: Uint8Array, turn: number) => Uint8Array = (bytes) => bytes,
) {
  const hello = router.take(change(step.first ?? new Uint8Array(), 0))
  const answer = step.take(change(hello.reply ?? new Uint8Array(), 1))
  const end = router.take(change(answer.reply ?? new Uint8Array(), 2))
  return { router: answer.member, step: end.member, hello: hello.reply }
}

await t.test('both ends learn who the other is', async (t) => {
  const id = 'ä'.repeat(127)
  const got = shake(openHandshake(KEY, id, 's'), answerHandshake(KEY, 's'))
  t.match(got, { router: id, step: 's' })
  t.ok((got.hello?.byteLength ?? 0) <= HANDSHAKE_BYTES)
})

await t.test('another key, another step or an old hello proves nothing', async (t) => {
  const denied = { reason: 'ACCESS_DENIED', message: 'another key' }
  t.throws(() => shake(openHandshake(`${KEY}x`, 'r', 's'), answerHandshake(KEY, 's')), denied)
  t.throws(() => shake(openHandshake(KEY, 'r', 's2'), answerHandshake(KEY, 's')), denied)
  const { hello } = shake(openHandshake(KEY, 'r', 's'), answerHandshake(KEY, 's'))
  t.throws(() => answerHandshake(KEY, 's').take(hello ?? new Uint8Array()), denied)
  const echoed = openHandshake(KEY, 'r', 's')
  const { reply } = echoed.take(Buffer.alloc(32))
  // Its own proof, sent back.
  t.throws(() => echoed.take(reply?.subarray(32, 64) ?? new Uint8Array()), denied)
})

await t.test('damage on the way is refused', async (t) => {
  const property = fc.property(
    fc.nat({ max: 2 }),
    fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc.tuple(fc.nat({ max: 64 }), fc.integer({ min: 1, max: 255 })),
    ),
    (turn, damage) => {
      const change = (bytes: Uint8Array, at: number): Uint8Array => {
        if (at !== turn) return bytes
        if (damage instanceof Uint8Array) return damage
        const [index, by] = damage
        const copy = Uint8Array.from(bytes)
        copy[index % copy.byteLength] = (copy[index % copy.byteLength] ?? 0) ^ by
        return copy
      }
      try {
        shake(openHandshake(KEY, 'r', 's'), answerHandshake(KEY, 's'), change)
      } catch (error) {
        ok(error instanceof ServeError, String(error))
        return ['ACCESS_DENIED', 'MALFORMED_MESSAGE'].includes(error.reason)
      }
      return false
    },
  )
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})
