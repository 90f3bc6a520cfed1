// All of it on a real cluster: npm run e2e [-- PART-OF-PATH ...]. What it needs: e2e/cluster/README.md.
import { openCluster } from '../e2e/cluster/cluster.mjs'
import { builtImages } from '../e2e/cluster/images.mjs'
import { Phases, Shown } from '../e2e/cluster/report.mjs'
import { runClusterTests } from '../e2e/cluster/run-tests.mjs'
import { runScript, SetupFailure } from './setup/failure.mjs'
import { renderTotals } from './testing/tap-output.mjs'

await runScript(async () => {
  const cluster = openCluster()
  const reason = cluster.whyNot()
  if (reason !== undefined) {
    console.log(`skipped: the tests on a cluster (${reason})`)
    console.log(renderTotals({ passed: 0, failed: 0, skipped: 1 }))
    return 0
  }
  return await runAll(cluster, process.argv.slice(2))
})

async function runAll(cluster, filters) {
  const shown = new Shown()
  const phases = new Phases(() => cluster.usedMemory())
  // The cluster is taken down whatever ends the run. Of a terminal tap gets the signal too; else its tests run to their end first.
  let isStopped = false
  const stop = () => {
    isStopped = true
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)
  const phase = async (name, work) => {
    if (isStopped) throw new SetupFailure('Stopped by a signal.')
    return await phases.run(name, work)
  }
  let code
  try {
    await phase('install and build', () => cluster.prepare())
    await phase('cluster up', () => cluster.up())
    await phase('images loaded', () => cluster.loadImages(cluster.isOwn ? builtImages() : []))
    code = await phase('tests', () => {
      return runClusterTests(cluster, filters, (line) => shown.take(line))
    })
  } finally {
    await phases.run('cluster down', () => cluster.down())
    // Behind the totals, which the tests have printed.
    console.log(`\n${shown.render()}\n\n${phases.render()}`)
  }
  return code
}
