import { bug } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  elementCount,
  isDatatype,
  type Parameter,
  type Parameters,
  type PartReport,
  type RequestContext,
  type Shape,
  STEP_COUNTS,
  type StepReport,
} from '@tutti/tensor'
import { MESSAGE_BOUNDS } from '../message-bounds.ts'
import { malformedField } from './malformed-field.ts'
import type { OutputHeader, TensorPart, WireTimes } from './message.ts'
import type { MemberMessageReader, MemberMessageWriter } from './message-bytes.ts'

/** Datatypes by their number in model_config.proto; the numbers begin with 1. */
const DATATYPES_BY_NUMBER: readonly (Datatype | undefined)[] = [
  undefined,
  ...Object.keys(DATATYPES)
    .filter(isDatatype)
    .toSorted((a, b) => DATATYPES[a].number - DATATYPES[b].number),
]
const BYTES_LENGTH_SIZE = 4
const PART_KINDS = ['inline', 'transfer', 'unasked'] as const
const PARAMETER_KINDS = ['bool', 'int64', 'string', 'double', 'uint64'] as const
const CORRELATION_KINDS = ['number', 'text'] as const
/** Calls of one step that are told one by one. */
const CALLS_BOUND = 4096
/** Calls of one step. */
const COUNT_BOUND = 65_536
const SEQUENCE_START = 1
const SEQUENCE_END = 2

export function writeParameters(writer: MemberMessageWriter, parameters: Parameters): void {
  writer.list([...parameters], MESSAGE_BOUNDS.parameters, writeParameter)
}

function writeParameter(
  writer: MemberMessageWriter,
  [key, parameter]: readonly [string, Parameter],
): void {
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

export function readParameters(reader: MemberMessageReader): Parameters {
  const parameters = new Map<string, Parameter>()
  reader.list('parameters', MESSAGE_BOUNDS.parameters, () => {
    const key = reader.text('key')
    if (parameters.has(key)) throw reader.malformed('key', `"${key}" stands there twice`)
    parameters.set(key, readParameter(reader))
  })
  return parameters
}

function readParameter(reader: MemberMessageReader): Parameter {
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

export function writeContext(writer: MemberMessageWriter, context: RequestContext): void {
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

export function readContext(reader: MemberMessageReader): RequestContext {
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

export function writeTimes(writer: MemberMessageWriter, times: WireTimes): void {
  writer.finite(times.queueNs, 0)
  writer.finite(times.computeInputNs, 0)
  writer.finite(times.computeInferNs, 0)
  writer.finite(times.computeOutputNs, 0)
}

export function readTimes(reader: MemberMessageReader): WireTimes {
  return {
    queueNs: reader.finite('times.queueNs', 0),
    computeInputNs: reader.finite('times.computeInputNs', 0),
    computeInferNs: reader.finite('times.computeInferNs', 0),
    computeOutputNs: reader.finite('times.computeOutputNs', 0),
  }
}

export function writePartReport(
  writer: MemberMessageWriter,
  { withheld, steps }: PartReport,
): void {
  writer.list(withheld, MESSAGE_BOUNDS.outputs, (_, name) => writer.text(name))
  writer.list(steps, MESSAGE_BOUNDS.inputs, writeStepReport)
}

function writeStepReport(
  writer: MemberMessageWriter,
  { step, model, calls, more, failures, counts }: StepReport,
): void {
  writer.text(step)
  writer.text(model)
  writer.list(calls, CALLS_BOUND, (_, { queueNs, computeNs, elapsedNs, isAnswer }) => {
    for (const ns of [queueNs, computeNs, elapsedNs]) writer.finite(ns, 0)
    writer.integer(isAnswer ? 1 : 0)
  })
  for (const count of [more, failures]) writer.integer(Math.min(count, COUNT_BOUND))
  const counted = STEP_COUNTS.filter((what) => (counts[what] ?? 0) > 0)
  writer.list(counted, STEP_COUNTS.length, (_, what) => {
    writer.integer(STEP_COUNTS.indexOf(what))
    writer.integer(counts[what] ?? 0)
  })
}

export function readPartReport(reader: MemberMessageReader): PartReport {
  return {
    withheld: reader.list('part.withheld', MESSAGE_BOUNDS.outputs, () => reader.text('name')),
    steps: reader.list('part.steps', MESSAGE_BOUNDS.inputs, readStepReport),
  }
}

/** Reads a number of calls. One by one they are counted again. */
function readCount(reader: MemberMessageReader, field: string): number {
  const count = reader.integer(field)
  if (count <= COUNT_BOUND) return count
  throw malformedField(field, `${count}, want at most ${COUNT_BOUND}`)
}

function readStepReport(reader: MemberMessageReader): StepReport {
  return {
    step: reader.text('step'),
    model: reader.text('model'),
    calls: reader.list('calls', CALLS_BOUND, () => ({
      queueNs: reader.finite('queueNs', 0),
      computeNs: reader.finite('computeNs', 0),
      elapsedNs: reader.finite('elapsedNs', 0),
      isAnswer: reader.integer('isAnswer') !== 0,
    })),
    more: readCount(reader, 'more'),
    failures: readCount(reader, 'failures'),
    counts: Object.fromEntries(
      reader.list('counts', STEP_COUNTS.length, () => {
        // A newer member may count what this one does not know.
        const what = STEP_COUNTS[reader.integer('what')] ?? 'unknown'
        return [what, reader.integer('count')] as const
      }),
    ),
  }
}

/** Writes a list of tensors with their parts, which are in the same order. */
export function writeTensors(
  writer: MemberMessageWriter,
  headers: readonly OutputHeader[],
  parts: readonly TensorPart[],
): void {
  if (parts.length !== headers.length)
    throw bug(`${parts.length} parts of ${headers.length} tensors`)
  let index = 0
  writer.list(headers, MESSAGE_BOUNDS.inputs, (_, header) => {
    const part = parts[index++]
    if (part === undefined) throw bug('a tensor without its part')
    writeTensor(writer, header, part)
  })
}

function writeTensor(writer: MemberMessageWriter, header: OutputHeader, part: TensorPart): void {
  const size = partSize(part)
  const problem = sizeProblem(header.datatype, header.shape, size)
  if (problem !== undefined) throw malformedField(`tensor "${header.name}"`, problem)
  writer.text(header.name)
  writer.choice(DATATYPES_BY_NUMBER, header.datatype)
  writer.list(header.shape, MESSAGE_BOUNDS.rank, writeExtent)
  writer.choice(PART_KINDS, part.kind === 'transfer' && part.isUnasked ? 'unasked' : part.kind)
  if (part.kind === 'inline') writer.inline(part.bytes)
  else writer.integer(part.transfer)
  writer.integer(size)
}

function writeExtent(writer: MemberMessageWriter, extent: number): void {
  writer.integer(extent)
}

/** Headers of tensors, and in the same order the parts that hold their bytes. Each part's size fits its datatype and shape. */
export interface TensorsWithParts {
  readonly headers: readonly OutputHeader[]
  readonly parts: readonly TensorPart[]
}

export function readTensors(reader: MemberMessageReader, field: string): TensorsWithParts {
  const parts: TensorPart[] = []
  const headers = reader.list(field, MESSAGE_BOUNDS.inputs, () => {
    const name = reader.text('name')
    const datatype = reader.choice('datatype', DATATYPES_BY_NUMBER)
    if (datatype === undefined) throw reader.malformed('datatype', 'the number 0')
    const shape: Shape = reader.list('shape', MESSAGE_BOUNDS.rank, readExtent)
    const part = readPart(reader)
    const problem = sizeProblem(datatype, shape, partSize(part))
    if (problem !== undefined) throw reader.malformed('size', problem)
    parts.push(part)
    return { name, datatype, shape }
  })
  return { headers, parts }
}

function readExtent(reader: MemberMessageReader): number {
  return reader.integer('extent')
}

function readPart(reader: MemberMessageReader): TensorPart {
  const kind = reader.choice('part', PART_KINDS)
  if (kind === 'inline') return { kind, bytes: reader.inline(reader.integer('size')) }
  const transfer = reader.integer('transfer')
  const size = reader.integer('size')
  return { kind: 'transfer', transfer, size, ...(kind === 'unasked' && { isUnasked: true }) }
}

/** Returns the size of a part's tensor, wherever its bytes are. */
function partSize(part: TensorPart): number {
  return part.kind === 'inline' ? part.bytes.byteLength : part.size
}

/** Finds what is wrong with `size` bytes for such a tensor, or undefined. Elements of BYTES are not looked at. */
function sizeProblem(datatype: Datatype, shape: Shape, size: number): string | undefined {
  const count = elementCount(shape)
  const { itemSize } = DATATYPES[datatype]
  if (itemSize === null) {
    const least = count * BYTES_LENGTH_SIZE
    const isEnough = count === 0 ? size === 0 : size >= least
    return isEnough ? undefined : `${size} bytes, want ${count === 0 ? 0 : `at least ${least}`}`
  }
  return size === count * itemSize ? undefined : `${size} bytes, want ${count * itemSize}`
}
