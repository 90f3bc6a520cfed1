import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { readContents, type TensorMessage } from '@tutti/protocol'
import {
  type Datatype,
  fromConfigDatatype,
  isDatatype,
  type NamedTensor,
  requestPrefix,
} from '@tutti/tensor'
import { refuseRequest } from './refuse.ts'
import { refuseSharedMemory } from './requested-outputs.ts'

/** How Triton prints a datatype text that it does not know. */
const INVALID_DATATYPE = '<invalid>'

/** What the inputs of one request are read against. */
export interface InputSource {
  readonly id: string
  readonly modelName: string
  readonly config: ModelConfig
  readonly inputs: readonly TensorMessage[]
  /** Entries for the inputs without contents of their own, in order. */
  readonly rawContents: readonly Uint8Array[]
  /** Bound for typed contents once they are raw. */
  readonly maxBytes: number
}

function refuse(source: InputSource, name: string, message: string): ServeError {
  return refuseRequest(message, `inputs.${name}`).withDetails({ model: source.modelName })
}

function typedData(
  source: InputSource,
  { name, datatype }: TensorMessage,
  contents: Uint8Array,
): Uint8Array {
  const known = isDatatype(datatype) ? datatype : undefined
  const read = readContents(contents, known, source.maxBytes)
  if (read.kind === 'data') return read.data
  const start = `unexpected explicit tensor data for input tensor '${name}' for model '${source.modelName}'`
  const why =
    read.kind === 'several'
      ? ', binary data was already supplied.'
      : ` of type '${read.found}', expected datatype '${known ?? INVALID_DATATYPE}'`
  throw refuse(source, name, start + why)
}

/** @param entry - position of the next unused raw entry. */
function dataOf(source: InputSource, input: TensorMessage, entry: number): Uint8Array {
  const { name, contents } = input
  if (contents === undefined) {
    const raw = source.rawContents[entry]
    if (raw !== undefined) return raw
    throw refuse(
      source,
      name,
      `unable to find data for input tensor '${name}' for model '${source.modelName}' in request.`,
    )
  }
  if (source.rawContents.length > 0) {
    throw refuse(
      source,
      name,
      `contents field must not be specified when using raw_input_contents for '${name}' for model '${source.modelName}'`,
    )
  }
  return typedData(source, input, contents)
}

/** Triton lets an unknown datatype in and reports it when it compares datatypes; our tensors cannot carry it so far. */
function refuseDatatype(source: InputSource, name: string): ServeError {
  const declared = source.config.input.find((input) => input.name === name)
  if (declared === undefined) {
    return refuse(
      source,
      name,
      `unexpected inference input '${name}' for model '${source.modelName}'`,
    )
  }
  const expected: Datatype | undefined = fromConfigDatatype(declared.data_type)
  const message = `${requestPrefix(source.id)}inference input '${name}' data-type is '${INVALID_DATATYPE}', but model '${source.modelName}' expects '${expected ?? INVALID_DATATYPE}'`
  return new ServeError('DATATYPE_MISMATCH', message, {
    details: { model: source.modelName, field: `inputs.${name}` },
  })
}

function refuseDuplicates(source: InputSource): void {
  const names = new Set<string>()
  for (const { name } of source.inputs) {
    if (names.has(name)) {
      const message = `${requestPrefix(source.id)}input '${name}' already exists in request`
      throw refuse(source, name, message)
    }
    names.add(name)
  }
}

/**
 * Gives each input its bytes, by the rules of triton-semantics 4.7: raw entries in order, or typed contents turned into
 * raw ones. Raw data are views into the message.
 *
 * @throws ServeError with Triton's text: duplicates, data missing or given twice, contents of another datatype, shared memory.
 */
export function readInputs(source: InputSource): readonly NamedTensor[] {
  if (source.inputs.length > 1) refuseDuplicates(source)
  let entry = 0
  const tensors: NamedTensor[] = []
  let invalid: string | undefined
  for (const input of source.inputs) {
    const { name, datatype, shape } = input
    refuseSharedMemory(name, input.parameters)
    const data = dataOf(source, input, entry)
    entry += 1
    if (isDatatype(datatype)) tensors.push({ name, datatype, shape, data })
    else invalid ??= name
  }
  if (invalid !== undefined) throw refuseDatatype(source, invalid)
  return tensors
}
