// Runs the benchmarks: npm run bench [-- ARGUMENTS of bench/src/main.ts]
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runChild } from './setup/child.mjs'
import { runScript } from './setup/failure.mjs'
import { toolEnvironment } from './setup/node-24.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

await runScript(() =>
  runChild(process.execPath, [join(root, 'bench', 'dist', 'main.js'), ...process.argv.slice(2)], {
    cwd: root,
    env: toolEnvironment(root),
    stdio: 'inherit',
  }),
)
