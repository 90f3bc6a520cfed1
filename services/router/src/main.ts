#!/usr/bin/env node
import { processEnvironment, reportFailure, runExecutable } from '@tutti/chassis'
import { routerExecutable } from './serve/router-executable.ts'

const environment = processEnvironment(process)

try {
  process.exitCode = await runExecutable(routerExecutable, process.argv.slice(2), environment)
} catch (error) {
  process.exitCode = reportFailure('tutti-router', error, environment)
}
