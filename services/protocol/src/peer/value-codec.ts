import type { Parameter, Parameters, RequestContext } from '@tutti/tensor'
import { MESSAGE_BOUNDS } from '../message-bounds.ts'
import type { PeerReader, PeerWriter } from './header-bytes.ts'
import type { TransferCredit, WireTimes } from './peer-message.ts'

/** Credits in one message: one for each tensor that it can be about. */
const CREDITS_BOUND = MESSAGE_BOUNDS.inputs
const PARAMETER_KINDS = ['bool', 'int64', 'string', 'double', 'uint64'] as const
const CORRELATION_KINDS = ['number', 'text'] as const
const SEQUENCE_START = 1
const SEQUENCE_END = 2

export function writeParameters(writer: PeerWriter, parameters: Parameters): void {
  writer.list([...parameters], MESSAGE_BOUNDS.parameters, writeParameter)
}

function writeParameter(writer: PeerWriter, [key, parameter]: readonly [string, Parameter]): void {
  writer.text(key)
  writer.choice(PARAMETER_KINDS, parameter.kind)
  switch (parameter.kind) {
    case 'bool':
      return writer.byte(parameter.value ? 1 : 0)
    case 'int64':
      return writer.int64(parameter.value)
    case 'string':
      return writer.text(parameter.value)
    case 'double':
      return writer.double(parameter.value)
    case 'uint64':
      return writer.uint64(parameter.value)
  }
}

export function readParameters(reader: PeerReader): Parameters {
  const parameters = new Map<string, Parameter>()
  reader.list('parameters', MESSAGE_BOUNDS.parameters, () => {
    const key = reader.text('key')
    if (parameters.has(key)) throw reader.malformed('key', `"${key}" stands there twice`)
    parameters.set(key, readParameter(reader))
  })
  return parameters
}

function readParameter(reader: PeerReader): Parameter {
  const kind = reader.choice('kind', PARAMETER_KINDS)
  switch (kind) {
    case 'bool':
      return { kind, value: reader.choice('value', [false, true]) }
    case 'int64':
      return { kind, value: reader.int64('value') }
    case 'string':
      return { kind, value: reader.text('value') }
    case 'double':
      return { kind, value: reader.double('value') }
    case 'uint64':
      break
  }
  return { kind, value: reader.uint64('value') }
}

export function writeContext(writer: PeerWriter, context: RequestContext): void {
  const { correlationId } = context
  writer.text(context.id)
  if (typeof correlationId === 'string') {
    writer.choice(CORRELATION_KINDS, 'text')
    writer.text(correlationId)
  } else {
    writer.choice(CORRELATION_KINDS, 'number')
    writer.uint64(correlationId)
  }
  writer.byte(
    (context.sequenceStart ? SEQUENCE_START : 0) | (context.sequenceEnd ? SEQUENCE_END : 0),
  )
  writer.uint64(context.priority)
  writer.uint64(context.timeoutUs)
  writeParameters(writer, context.parameters)
}

export function readContext(reader: PeerReader): RequestContext {
  const id = reader.text('context.id')
  const kind = reader.choice('context.correlationId', CORRELATION_KINDS)
  const correlationId =
    kind === 'text' ? reader.text('context.correlationId') : reader.uint64('context.correlationId')
  const sequence = reader.choice('context.sequence', [0, 1, 2, 3])
  return {
    id,
    correlationId,
    sequenceStart: (sequence & SEQUENCE_START) !== 0,
    sequenceEnd: (sequence & SEQUENCE_END) !== 0,
    priority: reader.uint64('context.priority'),
    timeoutUs: reader.uint64('context.timeoutUs'),
    parameters: readParameters(reader),
  }
}

export function writeTimes(writer: PeerWriter, times: WireTimes): void {
  writer.finite(times.queueNs, 0, Number.MAX_SAFE_INTEGER)
  writer.finite(times.computeInputNs, 0, Number.MAX_SAFE_INTEGER)
  writer.finite(times.computeInferNs, 0, Number.MAX_SAFE_INTEGER)
  writer.finite(times.computeOutputNs, 0, Number.MAX_SAFE_INTEGER)
}

export function readTimes(reader: PeerReader): WireTimes {
  return {
    queueNs: reader.finite('times.queueNs', 0, Number.MAX_SAFE_INTEGER),
    computeInputNs: reader.finite('times.computeInputNs', 0, Number.MAX_SAFE_INTEGER),
    computeInferNs: reader.finite('times.computeInferNs', 0, Number.MAX_SAFE_INTEGER),
    computeOutputNs: reader.finite('times.computeOutputNs', 0, Number.MAX_SAFE_INTEGER),
  }
}

export function writeCredits(writer: PeerWriter, credits: readonly TransferCredit[]): void {
  writer.list(credits, CREDITS_BOUND, writeCredit)
}

function writeCredit(writer: PeerWriter, credit: TransferCredit): void {
  writer.integer(credit.transfer)
  writer.integer(credit.upTo)
}

export function readCredits(reader: PeerReader): readonly TransferCredit[] {
  return reader.list('credits', CREDITS_BOUND, readCredit)
}

function readCredit(reader: PeerReader): TransferCredit {
  return { transfer: reader.integer('transfer'), upTo: reader.integer('upTo') }
}
