#!/usr/bin/env node
// What npm links as `tutti`. A Node that is too old must get as far as to say so.
import process from 'node:process'

const WANTED_MAJOR = 24
const { node } = process.versions

if (Number.parseInt(node, 10) < WANTED_MAJOR) {
  process.stderr.write(
    `tutti: got Node ${node}, want ${WANTED_MAJOR} or newer; install it from https://nodejs.org\n`,
  )
  process.exitCode = 1
} else {
  await import('../node_modules/@tutti/cli/dist/main.js')
}
