// The cluster of the tests: npm run cluster -- up|down|load-images|test [ARGUMENTS]
import { resolve } from 'node:path'
import { runScript, SetupFailure } from '../../scripts/setup/failure.mjs'
import { openCluster } from './cluster.mjs'
import { builtImages } from './images.mjs'
import { runClusterTests } from './run-tests.mjs'

const VERBS = {
  up: async (cluster) => {
    await cluster.up()
    console.log(`export KUBECONFIG=${cluster.kubeconfig}`)
  },
  down: (cluster) => cluster.down(),
  'load-images': (cluster, archives) => {
    const paths = archives.map((archive) => resolve(archive))
    return cluster.loadImages(paths.length > 0 ? paths : builtImages())
  },
  test: (cluster, filters) => runClusterTests(cluster, filters),
}

await runScript(async () => {
  const [verb, ...args] = process.argv.slice(2)
  if (!Object.hasOwn(VERBS, verb ?? '')) {
    throw new SetupFailure(
      `Say what to do: ${Object.keys(VERBS).join(', ')} (e2e/cluster/README.md).`,
    )
  }
  return (await VERBS[verb](openCluster(), args)) ?? 0
})
