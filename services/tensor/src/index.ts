export {
  bytesElements,
  decodeBytesTensor,
  encodeBytesTensor,
  walkBytesTensor,
} from './bytes-tensor.ts'
export { ELEMENT_READERS } from './element-readers.ts'
export { encodeElements, type Scalar } from './element-writers.ts'
export { endingSink } from './ending-sink.ts'
export { formatElementCount, formatShape, requestPrefix } from './error-texts.ts'
export {
  EMPTY_CONTEXT,
  type Executed,
  executedBefore,
  executedUnanswered,
  type InferRequest,
  type Lent,
  NO_TIMES,
  type PartReport,
  type RequestContext,
  type RequestOrigin,
  type ResponseSink,
  type StepReport,
  type StepRequest,
  type StepResponse,
  type StepTimes,
} from './execution.ts'
export type { ExecuteOptions, Executor, FindExecutor, ModelTarget } from './executor.ts'
export { type Elements, fitShape, nestedElements, oneElement } from './fit-shape.ts'
export { fromHalf, NUMBER_READERS, roundToEven, toBrain, toHalf } from './half.ts'
export { inputRefusal } from './input-refusal.ts'
export { Loan } from './loan.ts'
export { RESPONSE_WINDOW, ReadyGate } from './ready-gate.ts'
export { repeatBytes } from './repeat-bytes.ts'
export type {
  ObservedCall,
  ObservedClient,
  ObservedModel,
  RequestEnd,
  RequestObserver,
  RequestWatch,
} from './request-observer.ts'
export { STEP_COUNTS, type StepCount } from './step-counts.ts'
export {
  type ConfigDatatype,
  DATATYPE_BY_NAME,
  DATATYPES,
  type Datatype,
  elementCount,
  fromConfigDatatype,
  isDatatype,
  type NamedTensor,
  outputBytes,
  type Parameter,
  type Parameters,
  type Shape,
  shapeMatches,
  type TensorValue,
} from './tensor.ts'
export type { MemoryPart, TensorMemory } from './tensor-memory.ts'
