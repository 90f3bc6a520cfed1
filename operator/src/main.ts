#!/usr/bin/env node
import { processEnvironment, reportFailure, runExecutable } from '@tutti/chassis'
import { operatorExecutable } from './operator-executable.ts'

const environment = processEnvironment(process)
const executable = operatorExecutable({
  ...environment,
  onUnhandledRejection: (listener) => void process.on('unhandledRejection', listener),
})

try {
  process.exitCode = await runExecutable(executable, process.argv.slice(2), environment)
} catch (error) {
  process.exitCode = reportFailure('tutti-operator', error, environment)
}
