import { leave, type ProcessEnvironment, processSignals, runExecutable } from '@tutti/chassis'
import { operatorExecutable } from '../operator-executable.ts'
import { createToyControllers } from './toy-controllers.ts'

/** The operator as a process, with toys instead of models. */
const around: ProcessEnvironment = {
  // oxlint-disable-next-line node/no-process-env -- it is a main.ts, for tests
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  signals: processSignals(process),
  exit: leave,
}

const executable = operatorExecutable(
  {
    ...around,
    onUnhandledRejection: (listener) => void process.on('unhandledRejection', listener),
  },
  { createControllers: createToyControllers },
)
process.exitCode = await runExecutable(executable, process.argv.slice(2), around)
