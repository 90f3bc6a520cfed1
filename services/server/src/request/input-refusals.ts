import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { readContents, type TensorMessage } from '@tutti/protocol'
import { type Datatype, fromConfigDatatype, isDatatype, requestPrefix } from '@tutti/tensor'
import { refuseRequest } from './refuse.ts'

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

/** The bytes of an input that brings typed contents. @throws ServeError if they cannot be read, or raw ones came too. */
export function typedData(
  source: InputSource,
  { name, datatype }: TensorMessage,
  contents: Uint8Array,
): Uint8Array {
  if (source.rawContents.length > 0) {
    throw refuse(
      source,
      name,
      `contents field must not be specified when using raw_input_contents for '${name}' for model '${source.modelName}'`,
    )
  }
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

/** The error for a ModelInfer to a model that may answer any number of times. */
export function decoupledModel(model: string): ServeError {
  const text = "ModelInfer RPC doesn't support models with decoupled transaction policy"
  return new ServeError('UNSUPPORTED', text, { details: { model } })
}

/** The error for an input without contents and without a raw entry. */
export function missingData(source: InputSource, name: string): ServeError {
  const message = `unable to find data for input tensor '${name}' for model '${source.modelName}' in request.`
  return refuse(source, name, message)
}

/** The error for an input that comes twice. */
export function duplicateInput(source: InputSource, name: string): ServeError {
  return refuse(
    source,
    name,
    `${requestPrefix(source.id)}input '${name}' already exists in request`,
  )
}

/** Triton lets an unknown datatype in and reports it when it compares datatypes; our tensors cannot carry it so far. */
export function unknownDatatype(source: InputSource, name: string): ServeError {
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
