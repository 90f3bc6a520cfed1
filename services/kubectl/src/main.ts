#!/usr/bin/env node
import { processEnvironment } from '@tutti/chassis/process'
import { endUnwritable, runProgram } from '@tutti/command-line/program'
import { KUBECTL_PROGRAM } from './kubectl-program.ts'

process.stdout.on('error', (error) => endUnwritable(KUBECTL_PROGRAM.name, error))
process.exitCode = await runProgram(
  KUBECTL_PROGRAM,
  process.argv.slice(2),
  processEnvironment(process),
)
