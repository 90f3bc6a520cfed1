#!/usr/bin/env node
import { runWithFlags, SERVING_FLAGS } from '@tutti/chassis/runtime'

const SERVING = ['serve', 'step', 'router']

const argv = process.argv.slice(2)
if (SERVING.includes(argv[0] ?? '')) runWithFlags(SERVING_FLAGS, process)

const { processEnvironment } = await import('@tutti/chassis')
const { run } = await import('./run.ts')

const environment = { ...processEnvironment(process), input: process.stdin }
process.exitCode = await run(argv, environment)
