import type { ErrorCode } from './error-code.ts'

export const FRAME_HEADER_BYTES = 9
/** Bytes of a frame's payload that every peer accepts. @see RFC 9113, 4.2 */
export const LEAST_MAX_FRAME_BYTES = 2 ** 14
export const MOST_MAX_FRAME_BYTES = 2 ** 24 - 1
export const MAX_WINDOW_BYTES = 2 ** 31 - 1
/** Bytes of the window of a stream or connection for which no setting was sent. */
export const DEFAULT_WINDOW_BYTES = 2 ** 16 - 1
export const MAX_STREAM_ID = 2 ** 31 - 1

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Frame types. @see RFC 9113, 6 */
export const Type = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

/** Frame flags. `ack` belongs to SETTINGS and PING. */
export const Flag = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const

/** Ids of settings. @see RFC 9113, 6.5.2 */
export const Setting = {
  headerTableBytes: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowBytes: 4,
  maxFrameBytes: 5,
  maxHeaderListBytes: 6,
} as const

/** Writes the header of a frame, 9 bytes, to `out` from `at` on. */
export function putFrameHeader(
  out: Uint8Array,
  at: number,
  { length, type, flags, streamId }: FrameHeader,
): void {
  out[at] = length >>> 16
  out[at + 1] = length >>> 8
  out[at + 2] = length
  out[at + 3] = type
  out[at + 4] = flags
  out[at + 5] = streamId >>> 24
  out[at + 6] = streamId >>> 16
  out[at + 7] = streamId >>> 8
  out[at + 8] = streamId
}

export interface FrameHeader {
  /** Bytes of the payload. */
  readonly length: number
  readonly type: number
  readonly flags: number
  readonly streamId: number
}

function toFrame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.byteLength)
  putFrameHeader(frame, 0, { length: payload.byteLength, type, flags, streamId })
  frame.set(payload, FRAME_HEADER_BYTES)
  return frame
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(6 * settings.length)
  for (const [i, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, 6 * i)
    payload.writeUInt32BE(value, 6 * i + 2)
  }
  return toFrame(Type.settings, 0, 0, payload)
}

export const SETTINGS_ACK = toFrame(Type.settings, Flag.ack, 0, Buffer.alloc(0))

/** Makes a PING frame. @param data - 8 bytes. */
export function pingFrame(data: Uint8Array, isAnswer: boolean): Buffer {
  return toFrame(Type.ping, isAnswer ? Flag.ack : 0, 0, data)
}

/** Makes a WINDOW_UPDATE frame. @param streamId - 0 for the connection. */
export function windowUpdateFrame(streamId: number, bytes: number): Buffer {
  return toFrame(Type.windowUpdate, 0, streamId, toBytes(bytes))
}

export function resetFrame(streamId: number, code: ErrorCode): Buffer {
  return toFrame(Type.resetStream, 0, streamId, toBytes(code))
}

/** Makes a GOAWAY frame. @param lastId - the last stream that the server has taken, or may still take. */
export function goawayFrame(lastId: number, code: ErrorCode, text: string): Buffer {
  const payload = Buffer.concat([toBytes(lastId), toBytes(code), Buffer.from(text)])
  return toFrame(Type.goaway, 0, 0, payload)
}

function toBytes(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
