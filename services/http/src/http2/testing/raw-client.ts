import { FRAME_HEADER_BYTES, PREFACE } from '../frames.ts'
import { encodeFields } from '../hpack/encoder.ts'
import { type Http2Bounds, Http2Connection } from '../http2-connection.ts'
import type { ServerStream } from '../stream.ts'
import { echo, TEST_BOUNDS } from './plain-server.ts'

/** A frame as the server sent it. */
export interface SeenFrame {
  readonly type: number
  readonly flags: number
  readonly id: number
  readonly payload: Buffer
}

export interface RawFrame {
  readonly type: number
  readonly flags?: number
  readonly id?: number
  readonly payload?: Uint8Array
}

export function toFrame({ type, flags = 0, id = 0, payload = Buffer.alloc(0) }: RawFrame): Buffer {
  const head = Buffer.alloc(FRAME_HEADER_BYTES)
  head.writeUIntBE(payload.byteLength, 0, 3)
  head.set([type, flags], 3)
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

/** Encodes a number as four bytes, big-endian. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export const REQUEST_FIELDS = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/s/m'],
  [':authority', 'a'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const
export const REQUEST = encodeFields(REQUEST_FIELDS)
export const EMPTY_SETTINGS = toFrame({ type: 4 })

/** Makes a HEADERS frame. @param flags - 4: the block is whole; 5: the stream ends with it too. */
export function request(id: number, flags = 4, payload: Uint8Array = REQUEST): Buffer {
  return toFrame({ type: 1, flags, id, payload })
}

/** Drives the server's end of a connection without a socket. Frames are sent at once, and the answers are collected. */
export class RawClient {
  readonly connection: Http2Connection
  readonly streams: ServerStream[] = []
  now = 0
  isEnded = false
  isDestroyed = false
  /** True while the socket takes nothing. */
  isStuck = false
  writes = 0
  #received = Buffer.alloc(0)
  #done: (() => void) | undefined

  constructor(o: Partial<Http2Bounds> & { readonly serve?: (stream: ServerStream) => void } = {}) {
    const { serve = echo, ...bounds } = o
    this.connection = new Http2Connection({
      ...TEST_BOUNDS,
      ...bounds,
      now: () => this.now,
      handler: {
        stream: (stream) => {
          this.streams.push(stream)
          serve(stream)
        },
      },
      sink: {
        write: (pieces, done) => {
          this.writes += 1
          this.#received = Buffer.concat([this.#received, ...pieces])
          this.#done = done
          if (!this.isStuck) this.take()
        },
        end: () => (this.isEnded = true),
        endSoon: () => {},
        destroy: () => (this.isDestroyed = true),
      },
    })
  }

  /** Tells the server that the socket has taken all. */
  take(): void {
    const done = this.#done
    this.#done = undefined
    if (done !== undefined) setImmediate(done)
  }

  /** Sends the preface, empty settings and further frames. */
  open(...frames: readonly Uint8Array[]): void {
    this.send(PREFACE, EMPTY_SETTINGS, ...frames)
  }

  send(...frames: readonly Uint8Array[]): void {
    const read = Buffer.concat(frames)
    this.connection.receive(read)
    // As the next read of a socket does.
    read.fill(0xaa)
  }

  /** Takes what the server has sent since the last call, once it has nothing more to say. */
  async seen(): Promise<SeenFrame[]> {
    for (let turn = 0; turn < 8; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    const bytes = this.#received
    this.#received = Buffer.alloc(0)
    const frames: SeenFrame[] = []
    for (let at = 0; at < bytes.byteLength; ) {
      const begin = at + FRAME_HEADER_BYTES
      const end = begin + bytes.readUIntBE(at, 3)
      frames.push({
        type: bytes.readUInt8(at + 3),
        flags: bytes.readUInt8(at + 4),
        id: bytes.readUInt32BE(at + 5),
        payload: bytes.subarray(begin, end),
      })
      at = end
    }
    return frames
  }
}

export const ACK = toFrame({ type: 4, flags: 1 })

/** Takes requests and leaves the rest to the test, which finds them in `client.streams`. */
export function keep(stream: ServerStream): void {
  stream.handler = { data: () => {}, ended: () => {}, closed: () => {} }
}

export function goawayOf(frames: readonly SeenFrame[]) {
  const goaway = frames.find(({ type }) => type === 7)
  return goaway && { lastId: goaway.payload.readUInt32BE(0), code: goaway.payload.readUInt32BE(4) }
}

export const settings = (...entries: readonly (readonly [number, number])[]) =>
  toFrame({
    type: 4,
    payload: Buffer.concat(
      entries.map(([id, value]) => Buffer.concat([Buffer.of(0, id), uint32(value)])),
    ),
  })
export const data = (id: number, payload: Uint8Array, flags = 0) =>
  toFrame({ type: 0, flags, id, payload })
export const widen = (id: number, bytes: number) => toFrame({ type: 8, id, payload: uint32(bytes) })
export const reset = (id: number) => toFrame({ type: 3, id, payload: uint32(8) })
export const ping = toFrame({ type: 6, payload: Buffer.alloc(8, 1) })

export function resetsOf(frames: readonly SeenFrame[]): (readonly [number, number])[] {
  return frames
    .filter(({ type }) => type === 3)
    .map(({ id, payload }) => [id, payload.readUInt32BE(0)])
}

export function bodyOf(frames: readonly SeenFrame[], id: number): string {
  const pieces = frames.filter((frame) => frame.type === 0 && frame.id === id)
  return Buffer.concat(pieces.map(({ payload }) => payload)).toString()
}
