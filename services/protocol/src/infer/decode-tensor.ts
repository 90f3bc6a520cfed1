import { ServeError } from '@tutti/errors'
import type { Parameter, WireReader } from '@tutti/tensor'
import { MESSAGE_BOUNDS, tooMany } from '../message-bounds.ts'
import type { TensorMessage, WireParameters } from './infer-message.ts'

function decodeParameter(reader: WireReader, before: Parameter | undefined): Parameter | undefined {
  let parameter = before
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    switch (tag) {
      case 8:
        parameter = { kind: 'bool', value: reader.bool() }
        break
      case 16:
        parameter = { kind: 'int64', value: reader.int64() }
        break
      case 26:
        parameter = { kind: 'string', value: reader.text() }
        break
      case 33:
        parameter = { kind: 'double', value: reader.double() }
        break
      case 40:
        parameter = { kind: 'uint64', value: reader.uint64() }
        break
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
  return parameter
}

/** Reads one entry of a `map<string, InferParameter>` into `parameters`; the last of equal keys wins. */
export function decodeParameterEntry(
  reader: WireReader,
  parameters: Map<string, Parameter | undefined>,
): void {
  let key = ''
  let value: Parameter | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) key = reader.text()
    else if (tag === 18) value = decodeParameter(reader, value)
    else reader.skip(tag)
  }
  reader.leave(outer)
  if (parameters.size >= MESSAGE_BOUNDS.parameters) throw tooMany('parameters')
  parameters.set(key, value)
}

const NONE: WireParameters = new Map()

/** The extents of a shape as they come; one that is out of range is kept for when the tensor's name is known. */
class ShapeDecoder {
  readonly extents: number[] = []
  outOfRange: bigint | undefined

  read(reader: WireReader): void {
    if (this.extents.length >= MESSAGE_BOUNDS.rank) throw tooMany('rank')
    const extent = reader.safeInt64()
    if (typeof extent === 'number') this.extents.push(extent)
    else this.outOfRange ??= extent
  }

  readPacked(reader: WireReader): void {
    const outer = reader.enter()
    while (reader.hasMore()) this.read(reader)
    reader.leave(outer)
  }

  finish(tensor: string): readonly number[] {
    if (this.outOfRange === undefined) return this.extents
    throw new ServeError(
      'INVALID_REQUEST',
      `shape of tensor '${tensor}' has the extent ${this.outOfRange}, want 0 to 2^53 - 1`,
      { details: { field: `${tensor}.shape` } },
    )
  }
}

/** Protobuf merges a message field that comes twice, which for encoded bytes is putting one after the other. */
function merge(before: Uint8Array | undefined, more: Uint8Array): Uint8Array {
  return before === undefined ? more : Buffer.concat([before, more])
}

/** Reads an InferInputTensor or InferOutputTensor, which are laid out alike. */
export function decodeTensor(reader: WireReader): TensorMessage {
  let name = ''
  let datatype = ''
  const shape = new ShapeDecoder()
  let parameters: Map<string, Parameter | undefined> | undefined
  let contents: Uint8Array | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    switch (tag) {
      case 10:
        name = reader.text()
        break
      case 18:
        datatype = reader.text()
        break
      case 24:
        shape.read(reader)
        break
      case 26:
        shape.readPacked(reader)
        break
      case 34:
        parameters ??= new Map()
        decodeParameterEntry(reader, parameters)
        break
      case 42:
        contents = merge(contents, reader.view())
        break
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
  const tensor = { name, datatype, shape: shape.finish(name), parameters: parameters ?? NONE }
  return contents === undefined ? tensor : { ...tensor, contents }
}
