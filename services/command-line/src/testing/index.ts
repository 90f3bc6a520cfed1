export { type CommandInput, runIn } from './run-in.ts'
