#!/usr/bin/env node
import { processEnvironment } from '@tutti/chassis'
import { run } from './run.ts'

const environment = { ...processEnvironment(process), input: process.stdin }
process.exitCode = await run(process.argv.slice(2), environment)
