#!/usr/bin/env node
import { runWithFlags, SERVING_FLAGS } from '@tutti/chassis/runtime'
import { endUnwritable } from '@tutti/command-line/program'
import { terminalOf } from './terminal.ts'

const SERVING = ['serve', 'step', 'router']

const argv = process.argv.slice(2)
const isServing = SERVING.includes(argv[0] ?? '')
if (isServing) runWithFlags(SERVING_FLAGS, process)
else process.stdout.on('error', (error) => endUnwritable('tutti', error))

const { processEnvironment } = await import('@tutti/chassis/process')

const terminal = terminalOf(process)
const environment = {
  ...processEnvironment(process),
  input: process.stdin,
  ...(terminal && { terminal }),
}
process.exitCode = await runCommand()
// A connection that is still being made would keep the process: gRPC does not give up TLS with a server that says nothing.
if (!isServing) {
  process.stdout.write('', (error) => {
    if (!error) process.exit()
  })
}

/** Runs the command. For completion it loads only what asks for the models: all commands take three times as long to load. */
async function runCommand(): Promise<number> {
  if (argv[0] === 'completion' && argv[1] === 'models') {
    const { printModels } = await import('./completion/list-models.ts')
    return await printModels(argv.slice(2), environment)
  }
  const { run } = await import('./run.ts')
  return await run(argv, environment)
}
