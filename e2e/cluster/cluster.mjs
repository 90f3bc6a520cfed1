import { join } from 'node:path'
import { cacheFolder } from '../../scripts/setup/cache-folder.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { findKubeBinaries } from '../../scripts/setup/kube-binaries.mjs'
import { withLock } from '../../scripts/setup/lock.mjs'
import { ensureNatsServer } from '../../scripts/setup/nats-server.mjs'
import { ensureNatsImage, loadImages, missingImages } from './images.mjs'
import { installPackages, whyNoNode } from './machine.mjs'
import { NODE_ADDRESS } from './network.mjs'
import { Node } from './node.mjs'
import { ensureClusterPrograms } from './programs.mjs'

const STATE = '/var/lib/tutti-cluster'

/**
 * The cluster that tests run against: the one that KUBECONFIG names, which is neither started nor ended; else a node of this
 * machine's own.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 */
export function openCluster({ env = process.env, say = console.error } = {}) {
  const node = new Node(env.TUTTI_CLUSTER_STATE ?? STATE)
  const named = env.KUBECONFIG
  return named && named !== node.kubeconfig
    ? namedCluster(named, say)
    : ownCluster(node, { env, say })
}

function namedCluster(kubeconfig, say) {
  return {
    kubeconfig,
    isOwn: false,
    whyNot: () => undefined,
    prepare: async () => {},
    up: async () => say(`KUBECONFIG names a cluster, ${kubeconfig}: nothing is started.`),
    down: async () => say(`KUBECONFIG names a cluster, ${kubeconfig}: it stays as it is.`),
    loadImages: async (archives) => {
      if (archives.length === 0) return
      throw new SetupFailure(
        `KUBECONFIG names a cluster, ${kubeconfig}: put the images there as its kind of cluster wants it, e.g.\n` +
          archives.map((path) => `  kind load image-archive ${path}`).join('\n'),
      )
    },
    usedMemory: () => 0,
    testEnvironment: async () => ({ KUBECONFIG: kubeconfig, ...(await findKubeBinaries()) }),
  }
}

function ownCluster(node, o) {
  const { env, say } = o
  // Two runs on one machine would have the same addresses.
  const tellWait = () => say('Waiting for another run to start or end the cluster ...')
  const locked = (work) => withLock(join(cacheFolder(env), 'cluster.lock'), work, tellWait)
  return {
    kubeconfig: node.kubeconfig,
    isOwn: true,
    /** Why there can be none here, or undefined. */
    whyNot: () => (node.isUp ? undefined : whyNoNode(env)),
    /** Installs and builds what is not there yet. */
    prepare: async () => void (await prepare(o)),
    up: () =>
      locked(async () => {
        if (node.isUp) return
        const { kubernetes, programs, natsImage } = await prepare(o)
        await node.up({ kubernetes, programs, images: [natsImage], say })
      }),
    down: () => locked(() => node.down()),
    loadImages: async (archives) => loadImages(node, archives, say),
    usedMemory: () => node.usedMemory(),
    testEnvironment: async () => ({
      KUBECONFIG: node.kubeconfig,
      TUTTI_CLUSTER_ADDRESS: NODE_ADDRESS,
      TUTTI_CLUSTER_LACKS: missingImages(env).join(', '),
      ...(await findKubeBinaries({ env, say })),
    }),
  }
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
  const programs = await ensureClusterPrograms({ env, say })
  const natsImage = ensureNatsImage(
    await ensureNatsServer({ env, say }),
    join(programs.node, 'probe'),
    env,
  )
  return { kubernetes, programs, natsImage }
}
