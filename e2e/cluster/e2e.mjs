// All of it on a real cluster: npm run e2e [-- [--if-built] PART-OF-PATH ...]. What it needs: e2e/cluster/README.md.

import { runScript, SetupFailure } from '../../scripts/setup/failure.mjs'
import { withSignals } from '../../scripts/setup/signals.mjs'
import { renderTotals } from '../../scripts/testing/tap-output.mjs'
import { ensureImages } from './built-images.mjs'
import { openCluster } from './cluster.mjs'
import { builtImages } from './images.mjs'
import { runClusterTests } from './run-tests.mjs'

/** Skips the tests rather than to build programs for them; images are built all the same, which most changes make necessary. */
const ONLY_IF_BUILT = '--if-built'

await runScript(async () => {
  const { isOnlyIfBuilt, filters } = parseArguments(process.argv.slice(2))
  const cluster = openCluster()
  const reason = cluster.whyNot() ?? (isOnlyIfBuilt ? cluster.whyNotAtOnce() : undefined)
  if (reason !== undefined) {
    console.log(`skipped: the tests on a cluster (${reason})`)
    console.log(renderTotals({ passed: 0, failed: 0, skipped: 1 }))
    return 0
  }
  return await cluster.alone(() => withSignals((signal) => runAll(cluster, { filters, signal })))
})

function parseArguments(args) {
  const flags = args.filter((arg) => arg.startsWith('-'))
  const unknown = flags.find((flag) => flag !== ONLY_IF_BUILT)
  if (unknown !== undefined) {
    throw new SetupFailure(`npm run e2e got ${unknown}; want ${ONLY_IF_BUILT} or parts of paths.`)
  }
  return {
    isOnlyIfBuilt: flags.length > 0,
    filters: args.filter((arg) => !arg.startsWith('-')),
  }
}

async function runAll(cluster, { filters, signal }) {
  // A signal ends what a phase has started, the tests too.
  const phase = async (name, work) => {
    signal.throwIfAborted()
    return await timed(name, work)
  }
  let hasStarted = false
  try {
    await phase('install and build', () => cluster.prepare())
    await phase('images built', () => ensureImages())
    hasStarted = await phase('cluster up', () => cluster.up({ run: process.pid, signal }))
    await phase('images loaded', () => cluster.loadImages(builtImages()))
    return await phase('tests', () => runClusterTests(cluster, filters, { signal }))
  } finally {
    // A cluster that was up before stays up.
    if (hasStarted) await timed('cluster down', () => cluster.down())
  }
}

/** Runs a part of the run, and prints how long it took. */
async function timed(name, work) {
  const startedMs = performance.now()
  try {
    return await work()
  } finally {
    console.log(`${name}: ${((performance.now() - startedMs) / 1000).toFixed(1)} s`)
  }
}
