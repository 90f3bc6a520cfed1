#!/usr/bin/env node
import { runWithFlags, SERVING_FLAGS } from '@tutti/chassis/runtime'

const [command, ...rest] = process.argv.slice(2)
if (command !== 'fetch') runWithFlags(SERVING_FLAGS, process)

const { processEnvironment, reportFailure, runExecutable } = await import('@tutti/chassis')

const environment = processEnvironment(process)

try {
  if (command === 'fetch') {
    // Pods run it first. Without what serves, it takes 0.4 s of processor time to start instead of 1.1.
    const { runFetch } = await import('./fetch/run-fetch.ts')
    process.exitCode = await runFetch('tutti-step fetch', rest, environment)
  } else {
    const { stepExecutable } = await import('./serve/step-executable.ts')
    process.exitCode = await runExecutable(stepExecutable, process.argv.slice(2), environment)
  }
} catch (error) {
  process.exitCode = reportFailure('tutti-step', error, environment)
}
