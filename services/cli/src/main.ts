#!/usr/bin/env node
import { leave, processSignals } from '@tutti/chassis'
import { run } from './run.ts'

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  input: process.stdin,
  signals: processSignals(process),
  // What is still open then (a run that the engine cannot interrupt) must not keep the process.
  exit: leave,
})
