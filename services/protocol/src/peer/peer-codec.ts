import { assert } from '@tutti/errors'
import { MESSAGE_BOUNDS } from '../message-bounds.ts'
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
import { HEADER_LIMIT_BYTES, PEER_ID_LIMIT_BYTES, PEER_PROTOCOL_VERSION } from './limits.ts'
import {
  MESSAGE_MAGIC,
  messageBytes,
  PeerReader,
  PeerWriter,
  PREFIX_BYTES,
} from './message-bytes.ts'
import { malformedField, unsupportedField } from './peer-error.ts'
import type { PeerMessage, TransferCredit } from './peer-message.ts'
import { readError, writeError } from './wire-error.ts'

/** Credits in one message: one for each tensor that it can be about. */
const CREDITS_BOUND = MESSAGE_BOUNDS.inputs

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
  writer.start()
  writePeerId(message.from)
  writer.integer(message.call)
  writeBody(message)
  return writer.finish(TYPES.indexOf(message.type), flagsOf(message))
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

function writeBody(message: PeerMessage): void {
  switch (message.type) {
    case 'offer':
      return writeOffer(writer, message)
    case 'response':
      return writeResponse(writer, message)
    case 'accepted':
    case 'credit':
      return writer.list(message.credits, CREDITS_BOUND, writeCredit)
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

function writeCredit(_: PeerWriter, credit: TransferCredit): void {
  writer.integer(credit.transfer)
  writer.integer(credit.upTo)
}

/**
 * @param bytes - one whole message; inline tensors are views of it.
 * @throws ServeError MALFORMED_MESSAGE that names the field; UNSUPPORTED for another version or an unknown type.
 */
export function decodePeerMessage(bytes: Uint8Array): PeerMessage {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const type = readType(message)
  const reader = new PeerReader(message, readHeaderEnd(message))
  const from = reader.text('from')
  if (from === '' || Buffer.byteLength(from) > PEER_ID_LIMIT_BYTES) {
    throw malformedField('from', `want 1 to ${PEER_ID_LIMIT_BYTES} bytes`)
  }
  const call = reader.integer('call')
  const body = readBody(type, message.readUInt8(5), reader)
  reader.end()
  return { from, call, ...body }
}

/** Checks the prefix but for the lengths. */
function readType(message: Buffer): MessageType {
  if (message.byteLength < PREFIX_BYTES) {
    throw malformedField('prefix', `${message.byteLength} bytes, want at least ${PREFIX_BYTES}`)
  }
  if (message.readUInt32BE(0) !== MESSAGE_MAGIC) {
    if (message.toString('latin1', 0, 3) !== 'TPM') throw malformedField('magic', 'want TPM')
    throw unsupportedField('version', `${message.readUInt8(3)}, want ${PEER_PROTOCOL_VERSION}`)
  }
  const type = TYPES[message.readUInt8(4)]
  if (type === undefined) throw unsupportedField('type', `${message.readUInt8(4)} is not known`)
  const flags = message.readUInt8(5)
  if ((flags & ~flagsKnown(type)) !== 0) throw malformedField('flags', `${flags} for a ${type}`)
  if (message.readUInt16BE(6) !== 0) throw malformedField('prefix', 'bytes 6 and 7 are not 0')
  return type
}

function flagsKnown(type: MessageType): number {
  if (type === 'offer') return OFFER_FLAGS
  return type === 'response' ? RESPONSE_FLAGS : 0
}

function readHeaderEnd(message: Buffer): number {
  const headerLength = message.readUInt32LE(8)
  if (headerLength > HEADER_LIMIT_BYTES) {
    throw malformedField('header', `${headerLength} bytes, want at most ${HEADER_LIMIT_BYTES}`)
  }
  const headerEnd = PREFIX_BYTES + headerLength
  const size = messageBytes(headerEnd, message.readUInt32LE(12))
  if (size === message.byteLength) return headerEnd
  throw malformedField('inline', `lengths add up to ${size}, got ${message.byteLength} bytes`)
}

function readBody(type: MessageType, flags: number, reader: PeerReader): Body<PeerMessage> {
  switch (type) {
    case 'offer':
      return readOffer(reader, flags)
    case 'response':
      return readResponse(reader, flags)
    case 'accepted':
    case 'credit':
      return { type, credits: reader.list('credits', CREDITS_BOUND, readCredit) }
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

function readCredit(reader: PeerReader): TransferCredit {
  return { transfer: reader.integer('transfer'), upTo: reader.integer('upTo') }
}
