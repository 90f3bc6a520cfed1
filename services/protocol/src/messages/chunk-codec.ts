import { assert } from '@tutti/errors'
import { MEMBER_ID_LIMIT_BYTES, MESSAGE_PROTOCOL_VERSION } from './limits.ts'
import { malformedField } from './malformed-field.ts'
import type { ChunkHeader } from './message.ts'
import { align, checkMagic } from './message-bytes.ts'

/*
 * A chunk: `TPC`, version (1 byte), bytes of the sender's id (1), three zeros, transfer, offset and total (uint64 LE each), the
 * sender's id, zeros up to a multiple of 8 bytes, payload.
 */
const MAGIC = 0x54504300 + MESSAGE_PROTOCOL_VERSION
const FIXED_BYTES = 32

/** Decoded chunk; `bytes` is a view of the message. */
export interface Chunk extends ChunkHeader {
  readonly bytes: Uint8Array
}

/** Header of a chunk, with the bytes of its encoded head and of the payload behind that. */
export interface ChunkHead extends ChunkHeader {
  readonly headBytes: number
  readonly payloadBytes: number
}

/** Bytes of the longest head: the fixed fields and the longest member id, aligned. */
export const CHUNK_HEAD_BYTES: number = align(FIXED_BYTES + MEMBER_ID_LIMIT_BYTES)

/** Encodes the head of a chunk. @param payloadBytes - size of the payload that follows. @returns new memory. */
export function encodeChunkHead(header: ChunkHeader, payloadBytes: number): Buffer {
  const { from, transfer, offset, total } = header
  const fromBytes = Buffer.byteLength(from)
  assert(fromBytes > 0 && fromBytes <= MEMBER_ID_LIMIT_BYTES, `a member id of ${fromBytes} bytes`)
  const problem = rangeProblem(header, payloadBytes)
  assert(problem === undefined, `a chunk whose ${problem}`)
  const head = Buffer.alloc(align(FIXED_BYTES + fromBytes))
  head.writeUInt32BE(MAGIC, 0)
  head.writeUInt32LE(fromBytes, 4)
  head.writeBigUInt64LE(BigInt(transfer), 8)
  head.writeBigUInt64LE(BigInt(offset), 16)
  head.writeBigUInt64LE(BigInt(total), 24)
  head.write(from, FIXED_BYTES, 'utf8')
  return head
}

/**
 * Encodes a chunk.
 *
 * @param bytes - the transfer's bytes from `header.offset` on; copied.
 * @returns the chunk in one piece of memory of its own.
 */
export function encodeChunk(header: ChunkHeader, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([encodeChunkHead(header, bytes.byteLength), bytes])
}

/** Finds what of offset, total and payload does not go together, or undefined. An empty chunk is the whole of an empty transfer. */
function rangeProblem({ offset, total }: ChunkHeader, size: number): string | undefined {
  if (offset + size > total) return `end is ${offset + size} of ${total}`
  return size === 0 && total > 0 ? `payload is empty in a transfer of ${total} bytes` : undefined
}

/**
 * Decodes a chunk.
 *
 * @param bytes - one whole message.
 * @throws ServeError MALFORMED_MESSAGE that names the field; UNSUPPORTED for another version.
 */
export function decodeChunk(bytes: Uint8Array): Chunk {
  const { headBytes, payloadBytes: _, ...header } = decodeChunkHead(bytes, bytes.byteLength)
  return { ...header, bytes: bytes.subarray(headBytes) }
}

/**
 * Decodes the head of a chunk.
 *
 * @param head - the first bytes of a message: all, or at least CHUNK_HEAD_BYTES of them.
 * @param size - bytes of the whole message.
 * @throws ServeError as `decodeChunk`.
 */
export function decodeChunkHead(head: Uint8Array, size: number): ChunkHead {
  if (size < FIXED_BYTES) {
    throw malformedField('prefix', `${size} bytes, want at least ${FIXED_BYTES}`)
  }
  const buffer = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  const fromBytes = readPrefix(buffer)
  const header = {
    from: readFrom(buffer, fromBytes),
    transfer: readNumber(buffer, 8, 'transfer'),
    offset: readNumber(buffer, 16, 'offset'),
    total: readNumber(buffer, 24, 'total'),
  }
  const headBytes = align(FIXED_BYTES + fromBytes)
  const payloadBytes = size - headBytes
  const problem = rangeProblem(header, payloadBytes)
  if (problem !== undefined) throw malformedField('offset', problem)
  return { ...header, headBytes, payloadBytes }
}

/** @returns the length of the sender's id. */
function readPrefix(buffer: Buffer): number {
  checkMagic(buffer, 'TPC', MAGIC)
  if (buffer.readUIntLE(5, 3) !== 0) throw malformedField('prefix', 'bytes 5 to 7 are not 0')
  const fromBytes = buffer.readUInt8(4)
  const start = align(FIXED_BYTES + fromBytes)
  if (fromBytes === 0) throw malformedField('from', 'no bytes, want at least 1')
  if (start > buffer.byteLength) {
    throw malformedField('from', `${fromBytes} bytes in a chunk of ${buffer.byteLength}`)
  }
  return fromBytes
}

function readFrom(buffer: Buffer, size: number): string {
  const view = buffer.subarray(FIXED_BYTES, FIXED_BYTES + size)
  const text = view.toString('utf8')
  // Buffer replaces what is not UTF-8, and the text is short.
  if (!Buffer.from(text).equals(view)) throw malformedField('from', 'text that is not UTF-8')
  return text
}

function readNumber(buffer: Buffer, at: number, field: string): number {
  const value = Number(buffer.readBigUInt64LE(at))
  if (!Number.isSafeInteger(value)) throw malformedField(field, 'an integer over 2^53 - 1')
  return value
}
