export { buildCrd, GROUP, KINDS, type KindDefinition, VERSION } from './api/crds.ts'
export { buildGeneratedFiles } from './api/generated-files.ts'
export type { StructuralSchema } from './api/structural-schema.ts'
export { loadOperatorConfig, OperatorConfig } from './config.ts'
export {
  type ControllerContext,
  type ControllerSet,
  createControllers,
} from './controllers/index.ts'
export { type OperatorSurroundings, operatorExecutable } from './operator-executable.ts'
export { OPERATOR_FLAGS, type OperatorFlags } from './operator-flags.ts'
export { type OperatorOptions, startOperator } from './start-operator.ts'
