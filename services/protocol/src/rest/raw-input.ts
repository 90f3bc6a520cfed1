import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import {
  DATATYPES,
  encodeBytesTensor,
  fromConfigDatatype,
  type NamedTensor,
  requestPrefix,
} from '@tutti/tensor'

/** Bytes of a text that is copied behind its length at once. */
const MAX_TEXT_BYTES = 64 * 2 ** 20

/**
 * Takes a whole body as the only input of a model (binary data extension, header length 0). A batching model gets a
 * batch of one; one variable dimension is deduced from the size.
 *
 * @returns a view into `body`, or for BYTES a copy with its length prefix.
 * @throws ServeError INVALID_REQUEST if name, shape or datatype cannot be deduced, MESSAGE_TOO_LARGE for a text of more than 64 MiB.
 */
export function decodeRawInput(
  body: Uint8Array,
  modelName: string,
  config: ModelConfig,
): NamedTensor {
  const [input] = config.input
  if (input === undefined || config.input.length !== 1) {
    throw refusal(
      `Raw request must only have 1 input (found 1) to be deduced but got ${config.input.length} inputs in '${modelName}' model configuration`,
    )
  }
  const datatype = fromConfigDatatype(input.data_type)
  if (datatype === undefined) throw refusal(`invalid datatype for input ${input.name}`)
  const variable = input.dims.filter((extent) => extent === -1).length
  if (variable > 1) {
    throw refusal(
      `The shape of the raw input '${input.name}' can not be deduced because there are more than one variable-sized dimension`,
    )
  }
  const fixed = input.dims.reduce((count, extent) => (extent === -1 ? count : count * extent), 1)
  const batch = config.max_batch_size > 0 ? [1] : []
  const { itemSize } = DATATYPES[datatype]
  if (itemSize === null) {
    if (variable > 0 || fixed !== 1) {
      throw refusal(
        `For BYTE datatype raw input '${input.name}', the model must have input shape [1]`,
      )
    }
    if (body.byteLength > MAX_TEXT_BYTES) {
      const text = `raw input '${input.name}' of datatype BYTES has ${body.byteLength} bytes, want at most ${MAX_TEXT_BYTES}; send it behind a JSON header`
      throw new ServeError('MESSAGE_TOO_LARGE', text)
    }
    return {
      name: input.name,
      datatype,
      shape: [...batch, ...input.dims],
      data: encodeBytesTensor([body]),
    }
  }
  const deduced = fixed === 0 ? 0 : Math.floor(body.byteLength / fixed / itemSize)
  const dims = input.dims.map((extent) => (extent === -1 ? deduced : extent))
  return { name: input.name, datatype, shape: [...batch, ...dims], data: body }
}

function refusal(text: string): ServeError {
  // This form of a request has no place for an id.
  return new ServeError('INVALID_REQUEST', requestPrefix('') + text)
}
