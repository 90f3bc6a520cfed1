// Runs the benchmarks: npm run bench [-- ARGUMENTS of bench/src/main.ts]
import { join, resolve } from 'node:path'
import { runChild } from './setup/child.mjs'
import { findChromium } from './setup/chromium.mjs'
import { runScript, SetupFailure } from './setup/failure.mjs'
import { findKubeBinaries } from './setup/kube-binaries.mjs'
import { ensureNatsServer } from './setup/nats-server.mjs'
import { toolEnvironment } from './setup/node-24.mjs'
import { ensurePython } from './setup/python.mjs'

const root = resolve(import.meta.dirname, '..')

/** Benches of Python models; a run without names has all. */
const WITH_PYTHON = ['idle', 'python', 'interpreters', 'items', 'triton', 'compare']
/** Servers that others are compared with, each in a Python of its own: about 1 GB together. */
const PEERS = ['ray', 'mlserver']
const WITH_PEERS = ['compare']
/** Benches over a real broker. */
const WITH_NATS = ['idle', 'edges', 'processes', 'replicas']
/** Benches against a real API server. */
const WITH_KUBE = ['idle', 'operator']
/** Benches in a browser. */
const WITH_CHROMIUM = ['console']

/** `TUTTI_BENCH_RAY` and others, the interpreters; or `TUTTI_BENCH_RAY_MISSING`, why there is none. */
async function installPeers() {
  const found = {}
  for (const name of PEERS) {
    const key = `TUTTI_BENCH_${name.toUpperCase()}`
    try {
      found[key] = await ensurePython(join(root, 'bench', 'python', `${name}-requirements.txt`))
    } catch (error) {
      if (!(error instanceof SetupFailure)) throw error
      found[`${key}_MISSING`] = error.message.trim().split('\n').at(-1)
    }
  }
  return found
}

await runScript(async () => {
  const args = process.argv.slice(2)
  const names = args.filter((arg) => !arg.startsWith('-'))
  const needs = (some) => names.length === 0 || names.some((name) => some.includes(name))
  const requirements = join(root, 'bench', 'python', 'requirements.txt')
  const python = needs(WITH_PYTHON) && { TUTTI_BENCH_PYTHON: await ensurePython(requirements) }
  const peers = needs(WITH_PEERS) && (await installPeers())
  const nats = needs(WITH_NATS) && { TUTTI_NATS_SERVER: await ensureNatsServer() }
  const kube = needs(WITH_KUBE) && (await findKubeBinaries())
  const chromium = needs(WITH_CHROMIUM) && (await findChromium())
  return await runChild(process.execPath, [join(root, 'bench', 'dist', 'main.js'), ...args], {
    cwd: root,
    env: { ...toolEnvironment(root), ...python, ...peers, ...nats, ...kube, ...chromium },
    stdio: 'inherit',
  })
})
