#!/usr/bin/env node
import { runWithFlags, SERVING_FLAGS } from '@tutti/chassis/runtime'

const [command, ...rest] = process.argv.slice(2)
if (command !== 'fetch') runWithFlags(SERVING_FLAGS, process)

const { processEnvironment, reportFailure, runExecutable } = await import('@tutti/chassis')
const { runFetch } = await import('./fetch/run-fetch.ts')
const { stepExecutable } = await import('./serve/step-executable.ts')

const environment = processEnvironment(process)

try {
  process.exitCode =
    command === 'fetch'
      ? await runFetch('tutti-step fetch', rest, environment)
      : await runExecutable(stepExecutable, process.argv.slice(2), environment)
} catch (error) {
  process.exitCode = reportFailure('tutti-step', error, environment)
}
