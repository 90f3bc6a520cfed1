import { assert } from '@tutti/errors'
import { MESSAGE_BOUNDS } from '../message-bounds.ts'
import { writeTensors } from './offer-codec.ts'
import { malformedField } from './peer-error.ts'
import type { PeerMessage } from './peer-message.ts'
import type { PeerReader } from './peer-reader.ts'
import type { PeerWriter } from './peer-writer.ts'
import { type InlineTensors, type InlineViews, readTensor } from './tensor-parts.ts'
import {
  readError,
  readParameters,
  readTimes,
  writeError,
  writeParameters,
  writeTimes,
} from './value-codec.ts'

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

export function writeResponse(
  writer: PeerWriter,
  response: ResponseBody,
  inline: InlineTensors,
): void {
  const { error, times, outputs } = response
  assert(
    error === undefined || (response.final && outputs.length === 0),
    'a response with an error is not final or has outputs',
  )
  writer.integer(response.index)
  if (error !== undefined) writeError(writer, error)
  if (times !== undefined) writeTimes(writer, times)
  writeParameters(writer, response.parameters)
  writeTensors(writer, outputs, response.parts, inline)
}

export function readResponse(reader: PeerReader, flags: number, inline: InlineViews): ResponseBody {
  const final = (flags & IS_FINAL) !== 0
  const index = reader.integer('index')
  const error = (flags & HAS_ERROR) === 0 ? undefined : readError(reader)
  const times = (flags & HAS_TIMES) === 0 ? undefined : readTimes(reader)
  const parameters = readParameters(reader)
  const tensors = reader.list('outputs', MESSAGE_BOUNDS.outputs, () => readTensor(reader, inline))
  if (error !== undefined && !final)
    throw malformedField('error', 'in a response that is not final')
  if (error !== undefined && tensors.length > 0) throw malformedField('error', 'beside outputs')
  return {
    type: 'response',
    index,
    final,
    outputs: tensors.map(({ header }) => header),
    parts: tensors.map(({ part }) => part),
    parameters,
    ...(error !== undefined && { error }),
    ...(times !== undefined && { times }),
  }
}
