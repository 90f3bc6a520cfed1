#!/usr/bin/env node
import { runWithFlags, SERVING_FLAGS } from '@tutti/chassis/runtime'

runWithFlags(SERVING_FLAGS, process)

const { processEnvironment, reportFailure, runExecutable } = await import('@tutti/chassis')
const { routerExecutable } = await import('./serve/router-executable.ts')

const environment = processEnvironment(process)

try {
  process.exitCode = await runExecutable(routerExecutable, process.argv.slice(2), environment)
} catch (error) {
  process.exitCode = reportFailure('tutti-router', error, environment)
}
