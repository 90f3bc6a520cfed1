#!/usr/bin/env node
import { processEnvironment } from '@tutti/chassis/process'
import { endUnwritable } from '../broken-pipe.ts'
import { runProgram } from '../run-program.ts'
import { KUBECTL_PROGRAM } from './kubectl-program.ts'

process.stdout.on('error', (error) => endUnwritable(KUBECTL_PROGRAM.name, error))
process.exitCode = await runProgram(
  KUBECTL_PROGRAM,
  process.argv.slice(2),
  processEnvironment(process),
)
