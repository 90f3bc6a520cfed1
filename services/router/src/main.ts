#!/usr/bin/env node
import {
  leave,
  type ProcessEnvironment,
  processSignals,
  reportFailure,
  runExecutable,
} from '@tutti/chassis'
import { routerExecutable } from './serve/router-executable.ts'

const around: ProcessEnvironment = {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  signals: processSignals(process),
  // What is still open then must not keep the process.
  exit: leave,
}

try {
  process.exitCode = await runExecutable(routerExecutable, process.argv.slice(2), around)
} catch (error) {
  process.exitCode = reportFailure('tutti-router', error, around)
}
