/** The kinds of frames that are read or written here, by their number (RFC 9113, section 6). */
export const Kind = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const

/** A frame that was read. */
export interface Frame {
  readonly kind: number
  readonly flags: number
  readonly stream: number
  /** Viewed, not copied. */
  readonly payload: Buffer
}

const HEADER_BYTES = 9
const EMPTY = Buffer.alloc(0)

/** A frame as bytes. The payload is copied. */
export function frame(
  kind: number,
  flags: number,
  stream: number,
  payload: Buffer = EMPTY,
): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.byteLength)
  bytes.writeUIntBE(payload.byteLength, 0, 3)
  bytes.writeUInt8(kind, 3)
  bytes.writeUInt8(flags, 4)
  bytes.writeUInt32BE(stream, 5)
  bytes.set(payload, HEADER_BYTES)
  return bytes
}

/** Says how much the peer may send on a stream, or on all together (0), beyond what it may already. */
export function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(bytes)
  return frame(Kind.windowUpdate, 0, stream, payload)
}

/** Settings of a client that takes no pushes, and so many bytes on each stream. */
export function settings(windowBytes: number): Buffer {
  const payload = Buffer.alloc(12)
  payload.writeUInt16BE(2, 0)
  payload.writeUInt16BE(4, 6)
  payload.writeUInt32BE(windowBytes, 8)
  return frame(Kind.settings, 0, 0, payload)
}

/** The header block of a gRPC request. It neither uses nor changes the dynamic table, so that it is the same each time (RFC 7541). */
export function requestHeaders(path: string): Buffer {
  return Buffer.concat([
    // :method POST, :scheme http; then :path, :authority and content-type with values of ours.
    Buffer.from([0x83, 0x86, 0x04]),
    text(path),
    Buffer.from([0x01]),
    text('127.0.0.1'),
    Buffer.from([0x0f, 0x10]),
    text('application/grpc'),
    Buffer.from([0x00]),
    text('te'),
    text('trailers'),
  ])
}

/** A string without Huffman's code. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  if (bytes.byteLength > 126) throw new Error(`got a header of ${bytes.byteLength} bytes, want 126`)
  return Buffer.concat([Buffer.from([bytes.byteLength]), bytes])
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  #rest: Buffer = EMPTY

  /** @returns the frames that are complete. */
  read(bytes: Buffer): readonly Frame[] {
    const frames: Frame[] = []
    const all = this.#rest.byteLength === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    let at = 0
    while (all.byteLength - at >= HEADER_BYTES) {
      const end = at + HEADER_BYTES + all.readUIntBE(at, 3)
      if (end > all.byteLength) break
      frames.push({
        kind: all.readUInt8(at + 3),
        flags: all.readUInt8(at + 4),
        stream: all.readUInt32BE(at + 5) & 0x7fff_ffff,
        payload: all.subarray(at + HEADER_BYTES, end),
      })
      at = end
    }
    this.#rest = all.subarray(at)
    return frames
  }
}
