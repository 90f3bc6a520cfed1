export { endUnwritable } from './broken-pipe.ts'
export type { Choices, Command, CommandBody, CommandEntry } from './command.ts'
export { loadCommands } from './load-commands.ts'
export { type Program, runProgram } from './run-program.ts'
