import { WIRE_FIXED64, type WireReader } from '@tutti/formats'
import { type Parameter } from '@tutti/tensor'
import { MESSAGE_BOUNDS, type ParameterBudget, tooManyEntries } from '../message-bounds.ts'
import { NO_PARAMETERS, type RequestedOutputMessage } from './infer-message.ts'

/**
 * Reads one entry of a `map<string, InferParameter>` into a map; the last of equal keys wins.
 *
 * @param before - map of the entries so far; undefined makes a new one.
 * @returns the map with the new entry.
 */
export function readParameter(
  reader: WireReader,
  before: Map<string, Parameter | undefined> | undefined,
  budget: ParameterBudget,
): Map<string, Parameter | undefined> {
  let key = ''
  let value: Parameter | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) key = budget.key(reader)
    else if (tag === 18) value = readValue(reader, value, budget)
    else reader.skip(tag)
  }
  reader.leave(outer)
  const parameters = before ?? new Map<string, Parameter | undefined>()
  if (parameters.size >= MESSAGE_BOUNDS.parameters) throw tooManyEntries('parameters')
  return parameters.set(key, value)
}

const READERS = new Map<number, (reader: WireReader, budget: ParameterBudget) => Parameter>([
  [8, (reader) => ({ kind: 'bool', value: readInt64(reader) !== 0n })],
  [16, (reader) => ({ kind: 'int64', value: readInt64(reader) })],
  [26, (reader, budget) => ({ kind: 'string', value: budget.text(reader) })],
  [33, (reader) => ({ kind: 'double', value: readDouble(reader) })],
  [40, (reader) => ({ kind: 'uint64', value: BigInt.asUintN(64, readInt64(reader)) })],
])

function readInt64(reader: WireReader): bigint {
  reader.varint()
  return (BigInt(reader.high) << 32n) | BigInt(reader.low >>> 0)
}

function readDouble(reader: WireReader): number {
  const at = reader.position
  reader.skip(WIRE_FIXED64)
  return reader.bytes.readDoubleLE(at)
}

function readValue(
  reader: WireReader,
  before: Parameter | undefined,
  budget: ParameterBudget,
): Parameter | undefined {
  let parameter = before
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    const read = READERS.get(tag)
    if (read === undefined) reader.skip(tag)
    else parameter = read(reader, budget)
  }
  reader.leave(outer)
  return parameter
}

/** Reads an InferRequestedOutputTensor: a name, and the parameters of that output. */
export function readRequestedOutput(
  reader: WireReader,
  budget: ParameterBudget,
): RequestedOutputMessage {
  let name = ''
  let parameters: Map<string, Parameter | undefined> | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) name = reader.text()
    else if (tag === 18) parameters = readParameter(reader, parameters, budget)
    else reader.skip(tag)
  }
  reader.leave(outer)
  return { name, parameters: parameters ?? NO_PARAMETERS }
}
