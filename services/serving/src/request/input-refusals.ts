import { ServeError } from '@tutti/errors'
import { type InferRequestMessage, readContents, type TensorMessage } from '@tutti/protocol'
import { DATATYPE_BY_NAME, type Datatype, fromConfigDatatype, requestPrefix } from '@tutti/tensor'
import type { InferenceBackend, ResolvedModel } from '../backend/inference-backend.ts'
import { readRequestedOutputs } from './output-parameters.ts'
import type { PlacedInputs } from './placed-inputs.ts'
import { refuseRequest } from './refuse.ts'

/** How Triton prints a datatype text that it does not know. */
const INVALID_DATATYPE = '<invalid>'

/** The message, the model and the call that the inputs of one request are read from and against. */
export interface InputSource {
  readonly message: InferRequestMessage
  readonly model: ResolvedModel
  /** Counts typed contents once they are raw, beside the message, and bounds them. */
  readonly call: {
    readonly maxMessageBytes: number
    readonly backend: Pick<InferenceBackend, 'regions' | 'identity'>
    charge(bytes: number): void
  }
  /** Inputs in shared memory; absent before the first such input. */
  placed?: PlacedInputs
}

/**
 * Elements of typed contents that are read one by one, of all inputs of a request. They take some 100 ns each, as do ten bytes of
 * packed integers, or 128 bytes of packed floats or texts. Raw contents are not counted. The rest is for the fields that hold
 * them.
 */
const MAX_ELEMENTS = 2 ** 19 + 2 ** 12

/** Elements that were read so far, of the requests that bring typed contents. */
const elementsOf = new WeakMap<InputSource, number>()

function refuse(source: InputSource, name: string, message: string): ServeError {
  return refuseRequest(message, `inputs.${name}`).withDetails({ model: source.model.name })
}

/**
 * Reads the bytes of an input that brings typed contents. @throws ServeError if they cannot be read, or raw ones came too;
 * OVERLOADED.
 */
export function typedData(
  source: InputSource,
  { name, datatype }: TensorMessage,
  contents: Uint8Array,
): Uint8Array {
  if (source.message.rawInputContents.length > 0) {
    throw refuse(
      source,
      name,
      `contents field must not be specified when using raw_input_contents for '${name}' for model '${source.model.name}'`,
    )
  }
  const known = DATATYPE_BY_NAME.get(datatype)
  const before = elementsOf.get(source) ?? 0
  const bounds = { maxBytes: source.call.maxMessageBytes, maxElements: MAX_ELEMENTS - before }
  const read = readContents(contents, known, bounds)
  if (read.kind === 'data') {
    elementsOf.set(source, before + read.elements)
    source.call.charge(read.data.byteLength)
    return read.data
  }
  const start = `unexpected explicit tensor data for input tensor '${name}' for model '${source.model.name}'`
  const why =
    read.kind === 'several'
      ? ', binary data was already supplied.'
      : ` of type '${read.found}', expected datatype '${known ?? INVALID_DATATYPE}'`
  throw refuse(source, name, start + why)
}

/** Makes the error for a ModelInfer to a model that may answer any number of times. */
export function decoupledModel(model: string): ServeError {
  const text = "ModelInfer RPC doesn't support models with decoupled transaction policy"
  return new ServeError('UNSUPPORTED', text, { details: { model } })
}

/** Makes the error for an input without contents and without a raw entry. */
export function missingData(source: InputSource, name: string): ServeError {
  const message = `unable to find data for input tensor '${name}' for model '${source.model.name}' in request.`
  return refuse(source, name, message)
}

/** @throws ServeError INVALID_REQUEST if an input comes twice. */
export function refuseDuplicates(source: InputSource): void {
  const names = new Set<string>()
  for (const { name } of source.message.inputs) {
    if (names.has(name)) {
      const text = `${requestPrefix(source.message.id)}input '${name}' already exists in request`
      throw refuse(source, name, text)
    }
    names.add(name)
  }
}

/**
 * Makes the error of an unknown datatype. Triton lets it in and reports it when it compares datatypes; our tensors cannot carry
 * it so far.
 *
 * @throws ServeError if the outputs are wrong, which Triton reads before that.
 */
export function unknownDatatype(source: InputSource, name: string): ServeError {
  readRequestedOutputs(source.message.outputs, source.call.backend)
  const declared = source.model.config.input.find((input) => input.name === name)
  if (declared === undefined) {
    return refuse(
      source,
      name,
      `unexpected inference input '${name}' for model '${source.model.name}'`,
    )
  }
  const expected: Datatype | undefined = fromConfigDatatype(declared.data_type)
  const message = `${requestPrefix(source.message.id)}inference input '${name}' data-type is '${INVALID_DATATYPE}', but model '${source.model.name}' expects '${expected ?? INVALID_DATATYPE}'`
  return new ServeError('DATATYPE_MISMATCH', message, {
    details: { model: source.model.name, field: `inputs.${name}` },
  })
}
