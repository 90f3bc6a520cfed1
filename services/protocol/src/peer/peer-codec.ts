import { assert } from '@tutti/errors'
import {
  OFFER_FLAGS,
  offerFlags,
  RESPONSE_FLAGS,
  readOffer,
  readResponse,
  responseFlags,
  writeOffer,
  writeResponse,
} from './call-codec.ts'
import { headerTooLarge, PeerReader, PeerWriter } from './header-bytes.ts'
import { HEADER_LIMIT_BYTES, PEER_ID_LIMIT_BYTES, PEER_PROTOCOL_VERSION } from './limits.ts'
import { malformedField, unsupportedField } from './peer-error.ts'
import type { PeerMessage } from './peer-message.ts'
import { align, InlineTensors, InlineViews } from './tensor-parts.ts'
import { readCredits, writeCredits } from './value-codec.ts'
import { readError, writeError } from './wire-error.ts'

/*
 * A message: `TPM`, version (1 byte), type (1), flags (1), two zeros, length of the header (uint32 LE), bytes of the inline
 * tensors (uint32 LE), header, inline tensors, each at a multiple of 8 bytes with zeros between.
 */
const MAGIC = [0x54, 0x50, 0x4d] as const
const PREFIX_BYTES = 16

type MessageType = PeerMessage['type']

/** The position is the number on the wire; 0 is no type. New types come at the end. */
const TYPES = [
  undefined,
  'offer',
  'accepted',
  'refused',
  'response',
  'credit',
  'response-credit',
  'resend',
  'cancel',
  'done',
] as const satisfies readonly (MessageType | undefined)[]

type Body<T> = T extends PeerMessage ? Omit<T, 'from' | 'call'> : never

const writer = new PeerWriter()

/**
 * @returns the message in one piece of memory of its own; inline tensors are copied into it.
 * @throws ServeError MESSAGE_TOO_LARGE if header or inline tensors are over their limits, MALFORMED_MESSAGE if a tensor's bytes
 * do not fit its datatype and shape.
 */
export function encodePeerMessage(message: PeerMessage): Uint8Array {
  const inline = new InlineTensors()
  writer.start()
  writePeerId(message.from)
  writer.integer(message.call)
  writeBody(message, inline)
  const header = writer.written
  if (header.byteLength > HEADER_LIMIT_BYTES) throw headerTooLarge(header.byteLength)
  return joinMessage(TYPES.indexOf(message.type), flagsOf(message), header, inline)
}

function writePeerId(id: string): void {
  const size = Buffer.byteLength(id)
  assert(size > 0 && size <= PEER_ID_LIMIT_BYTES, `a peer id of ${size} bytes`)
  writer.text(id)
}

function flagsOf(message: PeerMessage): number {
  if (message.type === 'offer') return offerFlags(message.envelope)
  return message.type === 'response' ? responseFlags(message) : 0
}

function writeBody(message: PeerMessage, inline: InlineTensors): void {
  switch (message.type) {
    case 'offer':
      return writeOffer(writer, message, inline)
    case 'response':
      return writeResponse(writer, message, inline)
    case 'accepted':
    case 'credit':
      return writeCredits(writer, message.credits)
    case 'refused':
    case 'cancel':
      return writeError(writer, message.error)
    case 'response-credit':
      writer.integer(message.responses)
      return writer.integer(message.received)
    case 'resend':
      writer.integer(message.transfer)
      return writer.integer(message.offset)
    case 'done':
      return undefined
  }
}

function joinMessage(
  type: number,
  flags: number,
  header: Uint8Array,
  inline: InlineTensors,
): Uint8Array {
  const headerEnd = PREFIX_BYTES + header.byteLength
  const size = inline.size === 0 ? headerEnd : align(headerEnd) + inline.size
  const bytes = Buffer.allocUnsafe(size)
  bytes.set([...MAGIC, PEER_PROTOCOL_VERSION, type, flags, 0, 0])
  bytes.writeUInt32LE(header.byteLength, 8)
  bytes.writeUInt32LE(inline.size, 12)
  bytes.set(header, PREFIX_BYTES)
  let position = headerEnd
  for (const tensor of inline.tensors) {
    const at = align(position)
    // The memory is not cleared, and what was there before is nobody else's to read.
    bytes.fill(0, position, at)
    bytes.set(tensor, at)
    position = at + tensor.byteLength
  }
  return bytes
}

/**
 * @param bytes - one whole message; inline tensors are views of it.
 * @throws ServeError MALFORMED_MESSAGE that names the field; UNSUPPORTED for another version or an unknown type.
 */
export function decodePeerMessage(bytes: Uint8Array): PeerMessage {
  const prefix = readPrefix(bytes)
  const reader = new PeerReader(bytes, PREFIX_BYTES, prefix.headerEnd)
  const inline = new InlineViews(bytes, prefix.headerEnd)
  const from = reader.text('from')
  if (from === '' || Buffer.byteLength(from) > PEER_ID_LIMIT_BYTES) {
    throw malformedField('from', `want 1 to ${PEER_ID_LIMIT_BYTES} bytes`)
  }
  const call = reader.integer('call')
  const body = readBody(prefix, reader, inline)
  if (reader.left > 0) throw malformedField('header', `${reader.left} bytes after the last field`)
  inline.end()
  return { from, call, ...body }
}

interface Prefix {
  readonly type: MessageType
  readonly flags: number
  readonly headerEnd: number
}

function readPrefix(bytes: Uint8Array): Prefix {
  if (bytes.byteLength < PREFIX_BYTES) {
    throw malformedField('prefix', `${bytes.byteLength} bytes, want at least ${PREFIX_BYTES}`)
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (MAGIC.some((byte, i) => view.getUint8(i) !== byte)) {
    throw malformedField('magic', 'want TPM')
  }
  const version = view.getUint8(3)
  if (version !== PEER_PROTOCOL_VERSION) {
    throw unsupportedField('version', `${version}, want ${PEER_PROTOCOL_VERSION}`)
  }
  const type = TYPES[view.getUint8(4)]
  if (type === undefined) throw unsupportedField('type', `${view.getUint8(4)} is not known`)
  const flags = view.getUint8(5)
  if ((flags & ~flagsKnown(type)) !== 0) throw malformedField('flags', `${flags} for a ${type}`)
  if (view.getUint16(6) !== 0) throw malformedField('prefix', 'bytes 6 and 7 are not 0')
  return { type, flags, headerEnd: readLengths(view) }
}

function flagsKnown(type: MessageType): number {
  if (type === 'offer') return OFFER_FLAGS
  return type === 'response' ? RESPONSE_FLAGS : 0
}

/** @returns where the header ends. */
function readLengths(view: DataView): number {
  const headerLength = view.getUint32(8, true)
  const inlineLength = view.getUint32(12, true)
  if (headerLength > HEADER_LIMIT_BYTES) {
    throw malformedField('header', `${headerLength} bytes, want at most ${HEADER_LIMIT_BYTES}`)
  }
  const headerEnd = PREFIX_BYTES + headerLength
  const size = inlineLength === 0 ? headerEnd : align(headerEnd) + inlineLength
  if (size !== view.byteLength) {
    throw malformedField('inline', `lengths add up to ${size}, got ${view.byteLength} bytes`)
  }
  return headerEnd
}

function readBody(prefix: Prefix, reader: PeerReader, inline: InlineViews): Body<PeerMessage> {
  const { type } = prefix
  switch (type) {
    case 'offer':
      return readOffer(reader, prefix.flags, inline)
    case 'response':
      return readResponse(reader, prefix.flags, inline)
    case 'accepted':
    case 'credit':
      return { type, credits: readCredits(reader) }
    case 'refused':
    case 'cancel':
      return { type, error: readError(reader) }
    case 'response-credit':
      return { type, responses: reader.integer('responses'), received: reader.integer('received') }
    case 'resend':
      return { type, transfer: reader.integer('transfer'), offset: reader.integer('offset') }
    case 'done':
      break
  }
  return { type }
}
