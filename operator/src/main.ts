#!/usr/bin/env node
import { OPERATOR_V8_FLAGS, runWithFlags } from '@tutti/chassis/runtime'

runWithFlags(OPERATOR_V8_FLAGS, process)

const { processEnvironment, reportFailure, runExecutable } = await import('@tutti/chassis')
const { operatorExecutable } = await import('./operator-executable.ts')

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
