#!/usr/bin/env node
// The program that npm links as `tutti` and, with another MAIN, as `kubectl-tutti`. A Node that is too old must get as far as to
// start a newer one.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { ensureNode, isWanted } from './node-24.js'

const MAIN = new URL('../node_modules/@tutti/cli/dist/main.js', import.meta.url)
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']

if (isWanted(process.versions.node)) {
  await import(MAIN)
} else {
  try {
    runWith(await ensureNode())
  } catch (error) {
    process.stderr.write(`tutti: ${error.message}\n`)
    process.exitCode = 1
  }
}

/** Runs the command with another Node, and ends as it ends. */
function runWith(node) {
  const args = [fileURLToPath(MAIN), ...process.argv.slice(2)]
  const child = spawn(node, args, { stdio: 'inherit' })
  // A terminal's Ctrl-C reaches the child twice, which takes two so soon for one.
  const forward = (signal) => child.kill(signal)
  for (const signal of SIGNALS) process.on(signal, forward)
  child.once('error', (error) => {
    process.stderr.write(`tutti: ${node} does not start: ${error.message}\n`)
    process.exitCode = 1
  })
  child.once('exit', (code, signal) => {
    for (const known of SIGNALS) process.off(known, forward)
    if (SIGNALS.includes(signal)) process.kill(process.pid, signal)
    else process.exitCode = code ?? 128 + constants.signals[signal]
  })
}
