import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Test } from 'tap'
import { type Ended, ROOT, runProgram } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { pathOf } from './kubectl.ts'

/** `kubectl tutti`, by the plugin that kubectl finds on PATH. */
export async function openPlugin(t: Test): Promise<(...args: readonly string[]) => Promise<Ended>> {
  const folder = await tempFolder(t)
  const program = `exec '${process.execPath}' '${ROOT}services/kubectl/dist/main.js' "$@"\n`
  await writeFile(join(folder, 'kubectl-tutti'), `#!/bin/sh\n${program}`, { mode: 0o755 })
  const env = { ...process.env, PATH: `${folder}${delimiter}${process.env['PATH']}` }
  return (...args) => runProgram(pathOf('kubectl'), ['tutti', ...args], { env })
}
