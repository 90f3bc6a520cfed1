import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import t from 'tap'
import { ErrorCode } from './error-code.ts'
import { PREFACE } from './frames.ts'
import { encodeFields } from './hpack/encoder.ts'
import { Http2Connection } from './http2-connection.ts'
import type { ServerStream } from './stream.ts'
import { TEST_BOUNDS } from './testing/plain-server.ts'
import { EMPTY_SETTINGS, keep, request, reset, widen } from './testing/raw-client.ts'

const HEADERS = encodeFields([[':status', '200']])
const TRAILERS = encodeFields([['grpc-status', '0']])
const POISON = 0xee
const FILLED = 0x11

/** A server whose socket reads what it was given when it pleases, and bodies that are used for something else once they are released. */
class Lending {
  readonly streams: ServerStream[] = []
  readonly connection: Http2Connection
  #pending: { readonly pieces: readonly Uint8Array[]; readonly done: () => void } | undefined
  /** How often each body was released. */
  readonly released: number[] = []
  isPoisoned = false

  constructor() {
    this.connection = new Http2Connection({
      ...TEST_BOUNDS,
      now: () => 0,
      handler: {
        stream: (stream) => {
          keep(stream)
          this.streams.push(stream)
          stream.respond(HEADERS)
        },
      },
      sink: {
        write: (pieces, done) => (this.#pending = { pieces, done }),
        end: () => {},
        endSoon: () => {},
        // It reads no more.
        destroy: () => (this.#pending = undefined),
      },
    })
    this.connection.receive(Buffer.concat([PREFACE, EMPTY_SETTINGS]))
  }

  write(stream: ServerStream, bytes: number): void {
    const body = new Uint8Array(bytes).fill(FILLED)
    const number = this.released.push(0) - 1
    stream.write(body, undefined, () => {
      this.released[number] = (this.released[number] ?? 0) + 1
      body.fill(POISON)
    })
  }

  /** The socket reads what it has. */
  take(): void {
    const pending = this.#pending
    this.#pending = undefined
    const lent = pending?.pieces.filter(({ byteLength }) => byteLength > 2048) ?? []
    if (lent.some((piece) => piece.includes(POISON))) this.isPoisoned = true
    pending?.done()
  }

  /** The socket is gone. */
  lose(): void {
    this.#pending = undefined
    this.connection.close()
  }
}

type Action = (lending: Lending, stream: ServerStream | undefined, bytes: number) => void

const ACTIONS: readonly Action[] = [
  ({ connection, streams }) => connection.receive(request(2 * streams.length + 1, 5)),
  (lending, stream, bytes) => stream && lending.write(stream, bytes),
  (lending, stream, bytes) => stream && lending.write(stream, bytes % 3000),
  (_, stream) => stream?.end(TRAILERS),
  (_, stream) => stream?.reset(ErrorCode.cancel),
  ({ connection }, stream) => stream && connection.receive(reset(stream.id)),
  ({ connection }, _, bytes) => connection.receive(widen(0, bytes + 1)),
  ({ connection }, stream, bytes) => stream && connection.receive(widen(stream.id, bytes + 1)),
  (lending) => lending.take(),
  (lending) => lending.take(),
]
const ENDS: readonly Action[] = [
  ({ connection }) => connection.destroy(),
  (lending) => lending.lose(),
  ({ connection }) => connection.end(),
]

const step = fc.record({
  action: fc.nat({ max: ACTIONS.length - 1 }),
  stream: fc.nat({ max: 3 }),
  bytes: fc.nat({ max: 300_000 }),
  isTurn: fc.boolean(),
})

await t.test('a body is released once, when nothing reads it', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.nat({ max: 2 }), async (steps, end) => {
      const lending = new Lending()
      lending.connection.receive(request(1, 5))
      for (const { action, stream, bytes, isTurn } of steps) {
        ACTIONS[action]?.(lending, lending.streams[stream], bytes)
        if (isTurn) await nextTurn()
      }
      ENDS[end]?.(lending, undefined, 0)
      for (let turn = 0; turn < 4; turn += 1) {
        lending.take()
        await nextTurn()
      }
      lending.connection.destroy()
      return !lending.isPoisoned && lending.released.every((times) => times === 1)
    }),
    { numRuns: 300 },
  )
  t.pass()
})

await t.test('a stream that ends while the socket reads its body keeps it', async (t) => {
  const lending = new Lending()
  lending.connection.receive(request(1, 5))
  const [stream] = lending.streams
  if (stream === undefined) throw new Error('no stream')
  lending.write(stream, 60_000)
  await nextTurn()
  lending.connection.receive(reset(1))
  t.same(lending.released, [0])
  lending.take()
  t.same(lending.released, [1])
  lending.write(stream, 10)
  t.same(lending.released, [1, 1], 'what is written to a stream that is over is not read')
  t.notOk(lending.isPoisoned)
})
