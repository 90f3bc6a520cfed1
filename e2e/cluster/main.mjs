// The cluster of the tests: npm run cluster -- build|up|down|load-images|test [ARGUMENTS]
import { resolve } from 'node:path'
import { runScript, SetupFailure } from '../../scripts/setup/failure.mjs'
import { ensureImages } from './built-images.mjs'
import { openCluster } from './cluster.mjs'
import { builtImages } from './images.mjs'
import { runClusterTests } from './run-tests.mjs'

const TO_CLEAN_UP_MS = 10_000

const VERBS = {
  build: async (cluster) => {
    // The program that builds gets the signal too, and its failure removes what is half built.
    process.on('SIGTERM', () => setTimeout(() => process.exit(143), TO_CLEAN_UP_MS).unref())
    const reason = cluster.whyNot()
    if (reason !== undefined) throw new SetupFailure(`There can be no node here: ${reason}.`)
    await cluster.prepare()
    await ensureImages()
  },
  up: async (cluster) => {
    await cluster.up()
    console.log(cluster.usageByHand().join('\n'))
  },
  down: (cluster) => cluster.down(),
  'load-images': (cluster, named) => {
    const archives = named.length > 0 ? named.map((archive) => resolve(archive)) : builtImages()
    if (archives.length === 0) {
      throw new SetupFailure('There are no images to load: npm run images builds them.')
    }
    return cluster.loadImages(archives)
  },
  test: (cluster, filters) => cluster.alone(() => runClusterTests(cluster, filters)),
}
const TAKE_ARGUMENTS = ['load-images', 'test']

await runScript(async () => {
  const [verb, ...args] = process.argv.slice(2)
  if (!Object.hasOwn(VERBS, verb ?? '')) {
    throw new SetupFailure(
      `Say what to do: ${Object.keys(VERBS).join(', ')} (e2e/cluster/README.md).`,
    )
  }
  if (args.length > 0 && !TAKE_ARGUMENTS.includes(verb)) {
    throw new SetupFailure(`${verb} takes no arguments; got ${args.join(' ')}.`)
  }
  return (await VERBS[verb](openCluster(), args)) ?? 0
})
