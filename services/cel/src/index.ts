export { CelProgram } from './cel-program.ts'
export { type CelValue, toCelValue } from './cel-value.ts'
export {
  CompiledCondition,
  Condition,
  type Elements,
  type ElementType,
  type ParameterValue,
} from './condition.ts'
