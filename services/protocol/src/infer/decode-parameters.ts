import type { Parameter, WireReader } from '@tutti/tensor'
import { MESSAGE_BOUNDS, tooMany } from '../message-bounds.ts'

/** Reads one entry of a `map<string, InferParameter>`; the last of equal keys wins. @param before - the entries so far. @returns these with the new one. */
export function readParameter(
  reader: WireReader,
  before: Map<string, Parameter | undefined> | undefined,
): Map<string, Parameter | undefined> {
  let key = ''
  let value: Parameter | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) key = reader.text()
    else if (tag === 18) value = readValue(reader, value)
    else reader.skip(tag)
  }
  reader.leave(outer)
  const parameters = before ?? new Map<string, Parameter | undefined>()
  if (parameters.size >= MESSAGE_BOUNDS.parameters) throw tooMany('parameters')
  return parameters.set(key, value)
}

const READERS = new Map<number, (reader: WireReader) => Parameter>([
  [8, (reader) => ({ kind: 'bool', value: reader.bool() })],
  [16, (reader) => ({ kind: 'int64', value: reader.int64() })],
  [26, (reader) => ({ kind: 'string', value: reader.text() })],
  [33, (reader) => ({ kind: 'double', value: reader.double() })],
  [40, (reader) => ({ kind: 'uint64', value: reader.uint64() })],
])

function readValue(reader: WireReader, before: Parameter | undefined): Parameter | undefined {
  let parameter = before
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    const read = READERS.get(tag)
    if (read === undefined) reader.skip(tag)
    else parameter = read(reader)
  }
  reader.leave(outer)
  return parameter
}
