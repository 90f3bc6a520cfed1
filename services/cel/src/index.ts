export { CelProgram } from './cel-program.ts'
export { type CelValue, toCelValue } from './cel-value.ts'
