// Runs the benchmarks: npm run bench [-- ARGUMENTS of bench/src/main.ts]
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runChild } from './setup/child.mjs'
import { runScript } from './setup/failure.mjs'
import { toolEnvironment } from './setup/node-24.mjs'
import { ensurePython } from './setup/python.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

/** Benches of Python models; a run without names has all. */
const WITH_PYTHON = ['python', 'triton']

await runScript(async () => {
  const args = process.argv.slice(2)
  const names = args.filter((arg) => !arg.startsWith('-'))
  const needsPython = names.length === 0 || names.some((name) => WITH_PYTHON.includes(name))
  const requirements = join(root, 'bench', 'python', 'requirements.txt')
  const python = needsPython && { TUTTI_BENCH_PYTHON: await ensurePython(requirements) }
  return await runChild(process.execPath, [join(root, 'bench', 'dist', 'main.js'), ...args], {
    cwd: root,
    env: { ...toolEnvironment(root), ...python },
    stdio: 'inherit',
  })
})
