import { processEnvironment, runExecutable } from '@tutti/chassis'
import { operatorExecutable } from '../operator-executable.ts'
import { createToyControllers } from './toy-controllers.ts'

/** The operator as a process, with toys instead of models. */
const environment = processEnvironment(process)
const executable = operatorExecutable(
  {
    ...environment,
    onUnhandledRejection: (listener) => void process.on('unhandledRejection', listener),
  },
  { createControllers: createToyControllers },
)
process.exitCode = await runExecutable(executable, process.argv.slice(2), environment)
