export { CONSOLE_FLAGS, checkConsoleFlags } from './console-flags.ts'
export type { ConsoleModel, ConsoleSource, WaitOptions } from './console-source.ts'
export { openConsole } from './open-console.ts'
