#!/usr/bin/env node
import {
  leave,
  processSignals,
  reportFailure,
  runExecutable,
  type Surroundings,
} from '@tutti/chassis'
import { operatorExecutable } from './operator-executable.ts'
import { REMOVAL_COMMAND, runRemoval } from './removal/run-removal.ts'

const around: Surroundings = {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  signals: processSignals(process),
  // What is still open then must not keep the process.
  exit: leave,
}

const executable = operatorExecutable({
  ...around,
  onUnhandledRejection: (listener) => void process.on('unhandledRejection', listener),
})

const argv = process.argv.slice(2)

try {
  process.exitCode =
    argv[0] === REMOVAL_COMMAND
      ? await runRemoval(argv.slice(1), around)
      : await runExecutable(executable, argv, around)
} catch (error) {
  process.exitCode = reportFailure('tutti-operator', error, around)
}
