import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { cacheFolder } from '../../scripts/setup/cache-folder.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { findGo } from '../../scripts/setup/go.mjs'
import { findKubeBinaries, foundKubeBinaries } from '../../scripts/setup/kube-binaries.mjs'
import { withLock } from '../../scripts/setup/lock.mjs'
import { ensureNatsServer } from '../../scripts/setup/nats-server.mjs'
import { withSignals } from '../../scripts/setup/signals.mjs'
import { lackingImages, loadImages, makeNatsImage } from './images.mjs'
import { installPackages, whyNoNode } from './machine.mjs'
import { HOST_ADDRESS, NODE_ADDRESS } from './network.mjs'
import { Node } from './node.mjs'
import { ensureClusterPrograms, missingPrograms } from './programs.mjs'

const STATE = '/var/lib/tutti-cluster'
/** The programs that a node needs of those that `npm test` builds; a folder that somebody names may have fewer. */
const NEEDED = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl']

/**
 * The cluster that tests run against: a node of this machine's own.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 */
export function openCluster({ env = process.env, say = console.error } = {}) {
  const o = { env, say }
  const node = new Node(env.TUTTI_CLUSTER_STATE || STATE)
  const waiting = (what) => () => say(`Waiting for another run to ${what} ...`)
  // Two nodes on one machine would have the same addresses.
  const locked = (work, signal) => {
    const path = join(cacheFolder(env), 'cluster.lock')
    return withLock(path, work, waiting('start or end the cluster'), signal)
  }
  return {
    /** Why there can be none here, or undefined. */
    whyNot: () => (node.isUp ? undefined : (whyNoNode(env) ?? whyNoBuild(env))),
    /** Which programs would have to be built first, for many minutes, or undefined. */
    whyNotAtOnce: () => {
      const lacking = lackingBuilds(env)
      return lacking.length > 0 ? `not built yet: ${lacking.join(', ')}` : undefined
    },
    /** Runs what no other run may disturb: tests, which have the names of their namespaces in common. */
    alone: (work) =>
      withLock(join(cacheFolder(env), 'cluster-use.lock'), work, waiting('test on the cluster')),
    /** Installs and builds what is not there yet. */
    prepare: async () => void (await prepare(o)),
    /**
     * Starts it, unless it is up; a signal meanwhile ends what has been started.
     *
     * @param {{ run?: number, signal?: AbortSignal }} [o] - `run` as for `Node.up`; `signal` of a caller that takes signals itself:
     *   nothing is begun once it aborts.
     * @returns {Promise<boolean>} whether this has started it.
     */
    up: ({ run, signal: ofCaller } = {}) =>
      locked(async () => {
        if (node.isUp) return false
        const { kubernetes, programs, natsImage } = await prepare(o)
        ofCaller?.throwIfAborted()
        const images = [natsImage]
        await withSignals((signal) => node.up({ kubernetes, programs, images, run, signal, say }))
        return true
      }, ofCaller),
    down: () => locked(() => node.down()),
    loadImages: (archives) => loadImages(node, archives, say),
    /** The lines with which a shell's kubectl and helm speak to it. */
    usageByHand: () => usageByHand(node.kubeconfig, env),
    /** @throws SetupFailure if it is not up. */
    testEnvironment: async () => {
      const reason = node.whyNotUp()
      if (reason !== undefined) {
        throw new SetupFailure(`There is no cluster to test on: ${reason}. npm run cluster -- up`)
      }
      return {
        KUBECONFIG: node.kubeconfig,
        TUTTI_CLUSTER_ADDRESS: NODE_ADDRESS,
        TUTTI_CLUSTER_HOST: HOST_ADDRESS,
        TUTTI_CLUSTER_LACKS: (await lackingImages(node)).join(', '),
        ...(await findKubeBinaries({ env, say })),
      }
    },
  }
}

function usageByHand(kubeconfig, env) {
  const folder = foundKubeBinaries(env)
  return [
    `export KUBECONFIG='${kubeconfig}'`,
    ...(folder === undefined ? [] : [`export PATH='${resolve(folder)}':"$PATH"`]),
  ]
}

/** Lists the parts of a node that would have to be built. */
function lackingBuilds(env) {
  const kubernetes = foundKubeBinaries(env) === undefined ? ['kubernetes'] : []
  return [...kubernetes, ...missingPrograms(env)]
}

/** Why that cannot be, as part of a sentence, or undefined if it can, or need not be. */
function whyNoBuild(env) {
  return lackingBuilds(env).length > 0 ? findGo(env).reason : undefined
}

async function prepare({ env, say }) {
  const reason = whyNoNode(env)
  if (reason !== undefined) throw new SetupFailure(`There can be no node here: ${reason}.`)
  await installPackages({ env, say })
  const { TUTTI_KUBE_BIN: kubernetes, TUTTI_KUBE_MISSING: missing } = await findKubeBinaries({
    env,
    say,
  })
  if (kubernetes === undefined) throw new SetupFailure(`There can be no node: ${missing}.`)
  const lacking = NEEDED.filter((program) => !existsSync(join(kubernetes, program)))
  if (lacking.length > 0) {
    throw new SetupFailure(
      `There can be no node: ${kubernetes} lacks ${lacking.join(', ')}; want ${NEEDED.join(', ')} there, ` +
        'or neither TUTTI_KUBE_BIN nor KUBEBUILDER_ASSETS set.',
    )
  }
  const programs = await ensureClusterPrograms({ env, say })
  const natsImage = makeNatsImage(
    await ensureNatsServer({ env, say }),
    join(programs.node, 'probe'),
    env,
  )
  return { kubernetes, programs, natsImage }
}
