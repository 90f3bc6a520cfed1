export { measureJson, parseBoundedJson } from './bounded-json.ts'
export {
  bytesElements,
  decodeBytesTensor,
  encodeBytesTensor,
  walkBytesTensor,
} from './bytes-tensor.ts'
export { ELEMENT_READERS } from './element-readers.ts'
export { endingSink } from './ending-sink.ts'
export { formatElementCount, formatShape, requestPrefix } from './error-texts.ts'
export {
  EMPTY_CONTEXT,
  type Executed,
  type ExecuteOptions,
  type Executor,
  executedBefore,
  type FindExecutor,
  type InferRequest,
  type Lent,
  type ModelTarget,
  NO_TIMES,
  type RequestContext,
  type RequestOrigin,
  type ResponseSink,
  type StepRequest,
  type StepResponse,
  type StepTimes,
  type StepTraces,
  type TraceContext,
  type TracedModel,
} from './execution.ts'
export { type Elements, fitShape, nestedElements, oneElement } from './fit-shape.ts'
export { fromBrain, fromHalf, NUMBER_READERS, toBrain, toHalf } from './half.ts'
export { inputRefusal } from './input-refusal.ts'
export { Loan } from './loan.ts'
export { formatNpy, isNpy, isNpyDatatype, parseNpy } from './npy.ts'
export { mayBePicture, type PictureLayout, pictureLayout } from './picture-layout.ts'
export { RESPONSE_WINDOW, ReadyGate } from './ready-gate.ts'
export type { NamedTensor, Parameter, Parameters, TensorValue } from './tensor.ts'
export {
  type ConfigDatatype,
  DATATYPE_BY_NAME,
  DATATYPES,
  type Datatype,
  elementCount,
  fromConfigDatatype,
  isDatatype,
  outputBytes,
  type Shape,
  shapeMatches,
} from './tensor.ts'
export type { MemoryPart, TensorMemory } from './tensor-memory.ts'
export { sizeOfField, WireReader, WireWriter } from './wire.ts'
export {
  malformed,
  NAME_BYTES,
  tooLong,
  tooMany,
  WIRE_BYTES,
  WIRE_FIXED32,
  WIRE_FIXED64,
  WIRE_VARINT,
} from './wire-fields.ts'
