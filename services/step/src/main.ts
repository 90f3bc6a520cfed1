#!/usr/bin/env node
import { processEnvironment, reportFailure, runExecutable } from '@tutti/chassis'
import { runFetch } from './fetch/run-fetch.ts'
import { stepExecutable } from './serve/step-executable.ts'

const environment = processEnvironment(process)
const [command, ...rest] = process.argv.slice(2)

try {
  process.exitCode =
    command === 'fetch'
      ? await runFetch('tutti-step fetch', rest, environment)
      : await runExecutable(stepExecutable, process.argv.slice(2), environment)
} catch (error) {
  process.exitCode = reportFailure('tutti-step', error, environment)
}
