export { MAX_CLASS_SCORES } from './boxes/nms.ts'
export { MAX_PICTURE_SIDE, MAX_RUNS } from './boxes/probability-boxes.ts'
export { buildModel, builtinOf, type ConfiguredBuiltin } from './builtin-of.ts'
export {
  BUILTINS,
  type CodeBuiltinName,
  isCodeBuiltin,
  type OptionsOf,
} from './catalogue.ts'
export {
  BUILTIN_HOST,
  BUILTIN_HOST_CONFIG,
  BUILTIN_HOST_VERSION,
  BUILTIN_REVISION,
} from './host.ts'
export { MAX_SCANS } from './image/image-decode.ts'
export { ELEMENT_TYPES, TYPE_NUMBERS } from './onnx/element-types.ts'
export { ONNX_FIELDS } from './onnx/model-proto.ts'
export { INPUT_PREFIX } from './onnx/onnx-graph.ts'
export { writeBytes } from './onnx/wire-fields.ts'
export {
  buildOnnx,
  type InitializerSpec,
  type OnnxSpec,
  type OperatorSpec,
  type ValueSpec,
} from './onnx/write-onnx.ts'
export { leastBytes, MAX_OUTPUT_BYTES } from './output-bytes.ts'
export {
  findBuiltin,
  parseBuiltin,
  toOptionsSchema,
} from './parse-builtin.ts'
export type { BuiltinFault, FeedingTensor, Port, Ports } from './ports.ts'
export { type Signature, signatureOf } from './signature.ts'
export { MAX_STEP_TEXT, readStepText, toStepText } from './step-text.ts'
export { MAX_ROW_LENGTH } from './text/detokenize.ts'
export { BUILTIN_BACKEND, toModelConfig } from './to-model-config.ts'
