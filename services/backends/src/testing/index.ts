export {
  buildOnnx,
  type InitializerSpec,
  type OnnxSpec,
  type OperatorSpec,
  type ValueSpec,
} from '@tutti/builtins'
export { withoutCompiler } from '../devices/testing/compile-library.ts'
export { pretendCuda, pretendHandle } from '../devices/testing/pretend-cuda.ts'
export { createPythonEngine, type PythonEngineOptions } from '../python/python-engine.ts'
export { openSharedMemory } from '../python/shared-memory.ts'
export {
  ADD_CONFIG,
  addRequest,
  buildAddModel,
  fp32Declared,
  identitySpec,
  writeModelFile,
} from './add-model.ts'
export { countingMemory } from './counting-memory.ts'
export { executeOnce, fp32Tensor, fp32Values } from './execute.ts'
export { type DeclaredTensor, modelConfig, modelSource, stepRequest } from './model-source.ts'
