import { ServeError } from '@tutti/errors'
import { type Datatype, isDatatype, type Shape } from '@tutti/tensor'

/** An input or output in a model's metadata. */
export interface ReceivedTensorMetadata {
  readonly name: string
  readonly datatype: Datatype
  /** Shape with the batch dimension; -1 for any extent. */
  readonly shape: Shape
}

/** Metadata of a model that a client needs. */
export interface ReceivedMetadata {
  readonly name: string
  readonly inputs: readonly ReceivedTensorMetadata[]
  readonly outputs: readonly ReceivedTensorMetadata[]
  /** True if the model answers a request with any number of responses, which only a stream carries. */
  readonly isDecoupled: boolean
}

interface WireTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly (string | number)[]
}

/**
 * Reads a model's metadata, of gRPC or of REST.
 *
 * @throws ServeError MALFORMED_MESSAGE for a datatype that the protocol has not.
 */
export function readMetadata(metadata: {
  readonly name: string
  readonly inputs: readonly WireTensor[]
  readonly outputs: readonly WireTensor[]
}): Omit<ReceivedMetadata, 'isDecoupled'> {
  const { name, inputs, outputs } = metadata
  return { name, inputs: inputs.map(readTensor), outputs: outputs.map(readTensor) }
}

function readTensor({ name, datatype, shape }: WireTensor): ReceivedTensorMetadata {
  if (isDatatype(datatype)) return { name, datatype, shape: shape.map(Number) }
  throw new ServeError(
    'MALFORMED_MESSAGE',
    `the server says that '${name}' is of datatype '${datatype}'`,
  )
}
