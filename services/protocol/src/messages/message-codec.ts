import { bug } from '@tutti/errors'
import type { Envelope } from '../envelope.ts'
import { MESSAGE_BOUNDS } from '../message-bounds.ts'
import { CALLERS_LIMIT, DONE_LIMIT, HEADER_LIMIT_BYTES, MEMBER_ID_LIMIT_BYTES } from './limits.ts'
import { malformedField, unsupportedField } from './malformed-field.ts'
import type { Message, TransferCredit } from './message.ts'
import {
  checkMagic,
  MESSAGE_MAGIC,
  MemberMessageReader,
  MemberMessageWriter,
  messageBytes,
  PREFIX_BYTES,
} from './message-bytes.ts'
import {
  readContext,
  readParameters,
  readPartReport,
  readTensors,
  readTimes,
  writeContext,
  writeParameters,
  writePartReport,
  writeTensors,
  writeTimes,
} from './value-codec.ts'
import { readError, writeError } from './wire-error.ts'

/** Credits in one message: one for each tensor that it can be about. */
const CREDITS_BOUND = MESSAGE_BOUNDS.inputs

type MessageType = Message['type']

/** Types by their number on the wire; 0 is no type. New types come at the end. */
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

type Body<T> = T extends Message ? Omit<T, 'from' | 'call'> : never

const writer = new MemberMessageWriter()

/**
 * Encodes a message.
 *
 * @returns the message in one piece of memory of its own; inline tensors are copied into it.
 * @throws ServeError MESSAGE_TOO_LARGE if header or inline tensors are over their limits, MALFORMED_MESSAGE if a tensor's bytes
 * do not fit its datatype and shape.
 */
export function encodeMessage(message: Message): Uint8Array {
  writer.start()
  writeMemberId(message.from)
  writer.integer(message.call)
  writeBody(message)
  return writer.finish(TYPES.indexOf(message.type), flagsOf(message))
}

function writeMemberId(id: string): void {
  const size = Buffer.byteLength(id)
  if (!(size > 0 && size <= MEMBER_ID_LIMIT_BYTES)) throw bug(`a member id of ${size} bytes`)
  writer.text(id)
}

function flagsOf(message: Message): number {
  if (message.type === 'offer') return offerFlags(message)
  return message.type === 'response' ? responseFlags(message) : 0
}

function writeBody(message: Message): void {
  switch (message.type) {
    case 'offer':
      return writeOffer(message)
    case 'response':
      return writeResponse(message)
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

function writeCredit(_: MemberMessageWriter, credit: TransferCredit): void {
  writer.integer(credit.transfer)
  writer.integer(credit.upTo)
}

/**
 * Decodes a message.
 *
 * @param bytes - one whole message; inline tensors are views of it.
 * @throws ServeError MALFORMED_MESSAGE that names the field; UNSUPPORTED for another version or an unknown type.
 */
export function decodeMessage(bytes: Uint8Array): Message {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const type = readType(message)
  const reader = new MemberMessageReader(message, readHeaderEnd(message))
  const from = reader.text('from')
  if (from === '' || Buffer.byteLength(from) > MEMBER_ID_LIMIT_BYTES) {
    throw malformedField('from', `want 1 to ${MEMBER_ID_LIMIT_BYTES} bytes`)
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
  checkMagic(message, 'TPM', MESSAGE_MAGIC)
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

function readBody(type: MessageType, flags: number, reader: MemberMessageReader): Body<Message> {
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

function readCredit(reader: MemberMessageReader): TransferCredit {
  return { transfer: reader.integer('transfer'), upTo: reader.integer('upTo') }
}

/** An offer without what every message has. */
type OfferBody = Omit<Extract<Message, { type: 'offer' }>, 'from' | 'call'>

const HAS_REMAINING = 1
const HAS_TRACEPARENT = 2
const HAS_TRACESTATE = 4
const HAS_CALLERS = 8
const IS_DECOUPLED = 16
const HAS_RESPONSE_BYTES = 32
const HAS_DONE = 64
const HAS_PROGRAM = 128
const OFFER_FLAGS = 2 * HAS_PROGRAM - 1

/** Returns the flags of an offer's prefix, which name the optional fields that it carries. */
function offerFlags({ envelope, responseBytes, done }: OfferBody): number {
  return (
    (envelope.remainingMs === undefined ? 0 : HAS_REMAINING) |
    (envelope.traceparent === undefined ? 0 : HAS_TRACEPARENT) |
    (envelope.tracestate === undefined ? 0 : HAS_TRACESTATE) |
    (envelope.callers === undefined ? 0 : HAS_CALLERS) |
    (envelope.isDecoupled === undefined ? 0 : IS_DECOUPLED) |
    (responseBytes === undefined ? 0 : HAS_RESPONSE_BYTES) |
    (done === undefined ? 0 : HAS_DONE) |
    (envelope.program === undefined ? 0 : HAS_PROGRAM)
  )
}

function writeOffer(offer: OfferBody): void {
  const { envelope, parts, responseBytes, done } = offer
  writer.integer(offer.responseCredits)
  if (responseBytes !== undefined) writer.integer(responseBytes)
  if (done !== undefined) writer.list(done, DONE_LIMIT, (_, call) => writer.integer(call))
  writer.text(envelope.requestKey)
  writer.text(envelope.model)
  writer.integer(envelope.version)
  writer.text(envelope.revision)
  writer.text(envelope.step)
  writer.integer(envelope.attempt)
  if (envelope.remainingMs !== undefined) {
    writer.finite(envelope.remainingMs, Number.MIN_SAFE_INTEGER)
  }
  if (envelope.traceparent !== undefined) writer.text(envelope.traceparent)
  if (envelope.tracestate !== undefined) writer.text(envelope.tracestate)
  if (envelope.callers !== undefined) writer.list(envelope.callers, CALLERS_LIMIT, writeName)
  if (envelope.program !== undefined) writer.text(envelope.program)
  writeContext(writer, envelope.context)
  writer.list(envelope.requestedOutputs, MESSAGE_BOUNDS.outputs, writeName)
  writeTensors(writer, envelope.inputs, parts)
}

function writeName(_: MemberMessageWriter, name: string): void {
  writer.text(name)
}

function readOffer(reader: MemberMessageReader, flags: number): OfferBody {
  const responseCredits = reader.integer('responseCredits')
  const more = {
    ...((flags & HAS_RESPONSE_BYTES) !== 0 && { responseBytes: reader.integer('responseBytes') }),
    ...((flags & HAS_DONE) !== 0 && {
      done: reader.list('done', DONE_LIMIT, () => reader.integer('call')),
    }),
  }
  const envelope = {
    requestKey: reader.text('envelope.requestKey'),
    model: reader.text('envelope.model'),
    version: reader.integer('envelope.version'),
    revision: reader.text('envelope.revision'),
    step: reader.text('envelope.step'),
    attempt: reader.integer('envelope.attempt'),
    ...readOptional(reader, flags),
    context: readContext(reader),
    requestedOutputs: reader.list('envelope.requestedOutputs', MESSAGE_BOUNDS.outputs, readName),
  }
  const { headers: inputs, parts } = readTensors(reader, 'envelope.inputs')
  return { type: 'offer', envelope: { ...envelope, inputs }, parts, responseCredits, ...more }
}

function readName(reader: MemberMessageReader): string {
  return reader.text('name')
}

function readOptional(
  reader: MemberMessageReader,
  flags: number,
): Pick<
  Envelope,
  'remainingMs' | 'traceparent' | 'tracestate' | 'callers' | 'isDecoupled' | 'program'
> {
  return {
    ...((flags & HAS_REMAINING) !== 0 && {
      remainingMs: reader.finite('envelope.remainingMs', Number.MIN_SAFE_INTEGER),
    }),
    ...((flags & HAS_TRACEPARENT) !== 0 && { traceparent: reader.text('envelope.traceparent') }),
    ...((flags & HAS_TRACESTATE) !== 0 && { tracestate: reader.text('envelope.tracestate') }),
    ...((flags & HAS_CALLERS) !== 0 && {
      callers: reader.list('envelope.callers', CALLERS_LIMIT, readName),
    }),
    ...((flags & IS_DECOUPLED) !== 0 && { isDecoupled: true as const }),
    ...((flags & HAS_PROGRAM) !== 0 && { program: reader.text('envelope.program') }),
  }
}

/** A response without what every message has. */
type ResponseBody = Omit<Extract<Message, { type: 'response' }>, 'from' | 'call'>

const IS_FINAL = 1
const HAS_ERROR = 2
const HAS_TIMES = 4
const HAS_PART = 8
const RESPONSE_FLAGS = IS_FINAL | HAS_ERROR | HAS_TIMES | HAS_PART

/** Returns the flags of a response's prefix. */
function responseFlags(response: ResponseBody): number {
  return (
    (response.final ? IS_FINAL : 0) |
    (response.error === undefined ? 0 : HAS_ERROR) |
    (response.times === undefined ? 0 : HAS_TIMES) |
    (response.times?.part === undefined ? 0 : HAS_PART)
  )
}

function writeResponse(response: ResponseBody): void {
  const { error, times, outputs } = response
  if (error !== undefined && (!response.final || outputs.length > 0)) {
    throw bug('a response with an error is not final or has outputs')
  }
  writer.integer(response.index)
  if (error !== undefined) writeError(writer, error)
  if (times !== undefined) writeTimes(writer, times)
  if (times?.part !== undefined) writePartReport(writer, times.part)
  writeParameters(writer, response.parameters)
  writeTensors(writer, outputs, response.parts)
}

function readAllTimes(reader: MemberMessageReader, flags: number): ResponseBody['times'] {
  const times = (flags & HAS_TIMES) === 0 ? undefined : readTimes(reader)
  if ((flags & HAS_PART) === 0) return times
  if (times === undefined) throw malformedField('part', 'without times')
  return { ...times, part: readPartReport(reader) }
}

function readResponse(reader: MemberMessageReader, flags: number): ResponseBody {
  const final = (flags & IS_FINAL) !== 0
  const index = reader.integer('index')
  const error = (flags & HAS_ERROR) === 0 ? undefined : readError(reader)
  const times = readAllTimes(reader, flags)
  const parameters = readParameters(reader)
  const { headers: outputs, parts } = readTensors(reader, 'outputs')
  if (error !== undefined && !final)
    throw malformedField('error', 'in a response that is not final')
  if (error !== undefined && outputs.length > 0) throw malformedField('error', 'beside outputs')
  return {
    type: 'response',
    index,
    final,
    outputs,
    parts,
    parameters,
    ...(error !== undefined && { error }),
    ...(times !== undefined && { times }),
  }
}
