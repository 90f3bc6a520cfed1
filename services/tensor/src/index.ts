export { decodeBytesTensor, encodeBytesTensor } from './bytes-tensor.ts'
export {
  type ConfigDatatype,
  DATATYPES,
  type Datatype,
  fromConfigDatatype,
  isDatatype,
} from './datatype.ts'
export {
  EMPTY_CONTEXT,
  type RequestContext,
  type ResponseSink,
  type StepRequest,
  type StepResponse,
} from './execution.ts'
export { requestPrefix } from './request-prefix.ts'
export { elementCount, formatElementCount, formatShape, type Shape, shapeMatches } from './shape.ts'
export type { NamedTensor, Parameter, Parameters, TensorValue } from './tensor.ts'
export { TensorMemory, type TensorRef } from './tensor-memory.ts'
export {
  malformed,
  WIRE_BYTES,
  WIRE_FIXED32,
  WIRE_FIXED64,
  WIRE_VARINT,
  WireReader,
} from './wire/wire-reader.ts'
export {
  sizeOfField,
  sizeOfInt64,
  sizeOfText,
  sizeOfVarint,
  WireWriter,
} from './wire/wire-writer.ts'
