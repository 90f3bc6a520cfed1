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
export { openBuiltins } from './builtin-steps.ts'
export { countingMemory } from './counting-memory.ts'
export { createDice } from './dice.ts'
export { executeOnce, fp32Tensor, fp32Values } from './execute.ts'
export { type DeclaredTensor, modelConfig, modelSource, stepRequest } from './model-source.ts'
export { runChain } from './run-chain.ts'
export { createDraw } from './step-kinds/create-draw.ts'
export {
  type ChainStep,
  portsOf,
  STEP_KINDS,
  type StepChain,
  type StepKind,
} from './step-kinds/index.ts'
