#!/usr/bin/env node
import {
  leave,
  type ProcessEnvironment,
  processSignals,
  reportFailure,
  runExecutable,
} from '@tutti/chassis'
import { operatorExecutable } from './operator-executable.ts'

const environment: ProcessEnvironment = {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  signals: processSignals(process),
  // What is still open then must not keep the process.
  exit: leave,
}

const executable = operatorExecutable({
  ...environment,
  onUnhandledRejection: (listener) => void process.on('unhandledRejection', listener),
})

try {
  process.exitCode = await runExecutable(executable, process.argv.slice(2), environment)
} catch (error) {
  process.exitCode = reportFailure('tutti-operator', error, environment)
}
