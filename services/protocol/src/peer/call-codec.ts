import { assert } from '@tutti/errors'
import type { Envelope } from '../envelope.ts'
import { MESSAGE_BOUNDS } from '../message-bounds.ts'
import { CALLERS_LIMIT } from './limits.ts'
import type { PeerReader, PeerWriter } from './message-bytes.ts'
import { malformedField } from './peer-error.ts'
import type { PeerMessage } from './peer-message.ts'
import {
  readContext,
  readParameters,
  readTensors,
  readTimes,
  writeContext,
  writeParameters,
  writeTensors,
  writeTimes,
} from './value-codec.ts'
import { readError, writeError } from './wire-error.ts'

/** An offer without what every message has. */
export type OfferBody = Omit<Extract<PeerMessage, { type: 'offer' }>, 'from' | 'call'>

const HAS_REMAINING = 1
const HAS_TRACEPARENT = 2
const HAS_TRACESTATE = 4
const HAS_CALLERS = 8
const IS_DECOUPLED = 16
export const OFFER_FLAGS =
  HAS_REMAINING | HAS_TRACEPARENT | HAS_TRACESTATE | HAS_CALLERS | IS_DECOUPLED

/** The flags of an offer's prefix: which optional fields of the envelope it carries. */
export function offerFlags(envelope: Envelope): number {
  return (
    (envelope.remainingMs === undefined ? 0 : HAS_REMAINING) |
    (envelope.traceparent === undefined ? 0 : HAS_TRACEPARENT) |
    (envelope.tracestate === undefined ? 0 : HAS_TRACESTATE) |
    (envelope.callers === undefined ? 0 : HAS_CALLERS) |
    (envelope.isDecoupled === undefined ? 0 : IS_DECOUPLED)
  )
}

export function writeOffer(writer: PeerWriter, offer: OfferBody): void {
  const { envelope, parts } = offer
  writer.integer(offer.responseCredits)
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
  writeContext(writer, envelope.context)
  writer.list(envelope.requestedOutputs, MESSAGE_BOUNDS.outputs, writeName)
  writeTensors(writer, envelope.inputs, parts)
}

function writeName(writer: PeerWriter, name: string): void {
  writer.text(name)
}

export function readOffer(reader: PeerReader, flags: number): OfferBody {
  const responseCredits = reader.integer('responseCredits')
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
  return { type: 'offer', envelope: { ...envelope, inputs }, parts, responseCredits }
}

function readName(reader: PeerReader): string {
  return reader.text('name')
}

function readOptional(
  reader: PeerReader,
  flags: number,
): Pick<Envelope, 'remainingMs' | 'traceparent' | 'tracestate' | 'callers' | 'isDecoupled'> {
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
  }
}

/** A response without what every message has. */
export type ResponseBody = Omit<Extract<PeerMessage, { type: 'response' }>, 'from' | 'call'>

const IS_FINAL = 1
const HAS_ERROR = 2
const HAS_TIMES = 4
export const RESPONSE_FLAGS = IS_FINAL | HAS_ERROR | HAS_TIMES

/** The flags of a response's prefix. */
export function responseFlags(response: ResponseBody): number {
  return (
    (response.final ? IS_FINAL : 0) |
    (response.error === undefined ? 0 : HAS_ERROR) |
    (response.times === undefined ? 0 : HAS_TIMES)
  )
}

export function writeResponse(writer: PeerWriter, response: ResponseBody): void {
  const { error, times, outputs } = response
  assert(
    error === undefined || (response.final && outputs.length === 0),
    'a response with an error is not final or has outputs',
  )
  writer.integer(response.index)
  if (error !== undefined) writeError(writer, error)
  if (times !== undefined) writeTimes(writer, times)
  writeParameters(writer, response.parameters)
  writeTensors(writer, outputs, response.parts)
}

export function readResponse(reader: PeerReader, flags: number): ResponseBody {
  const final = (flags & IS_FINAL) !== 0
  const index = reader.integer('index')
  const error = (flags & HAS_ERROR) === 0 ? undefined : readError(reader)
  const times = (flags & HAS_TIMES) === 0 ? undefined : readTimes(reader)
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
