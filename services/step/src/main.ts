#!/usr/bin/env node
import {
  leave,
  type ProcessEnvironment,
  processSignals,
  reportFailure,
  runExecutable,
} from '@tutti/chassis'
import { runFetch } from './fetch/run-fetch.ts'
import { stepExecutable } from './serve/step-executable.ts'

const around: ProcessEnvironment = {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  signals: processSignals(process),
  // What is still open then (a run that the engine cannot interrupt) must not keep the process.
  exit: leave,
}

const [command, ...rest] = process.argv.slice(2)
try {
  process.exitCode =
    command === 'fetch'
      ? await runFetch('tutti-step fetch', rest, around)
      : await runExecutable(stepExecutable, process.argv.slice(2), around)
} catch (error) {
  process.exitCode = reportFailure('tutti-step', error, around)
}
