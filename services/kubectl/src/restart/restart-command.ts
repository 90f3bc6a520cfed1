import { ENSEMBLE_LABEL, isOfBuiltins, isOfRouter } from '@tutti/api'
import {
  type FlagTable,
  type ProcessEnvironment,
  printable,
  sleep,
  systemClock,
} from '@tutti/chassis'
import { KUBECTL_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { ServeError } from '@tutti/errors'
import { DEPLOYMENT, type Deployment, KubeError, keyOf, type Stored } from '@tutti/kube'
import { CLUSTER_FLAGS, type Cluster, Reader, withCluster } from '../cluster.ts'
import { parseDuration } from '../duration.ts'
import { ENSEMBLE, type EnsembleObject, MODEL, type ModelObject } from '../resources.ts'
import { modelsOfPods, readPods, SERVING_SELECTOR } from '../status/read-state.ts'
import { findTarget, type Target } from '../targets.ts'
import {
  type Ended,
  failureOf,
  followRollouts,
  type Restarted,
  toRefusal,
} from './follow-rollouts.ts'
import { type RestartedPods, RestartResult, renderRestart } from './restart-result.ts'
import { RESTARTED_AT } from './rollout.ts'

const TIMEOUT_FLAG = '--timeout'
export const RESTART_FLAGS = {
  ...CLUSTER_FLAGS,
  'no-wait': {
    type: 'bool',
    default: false,
    description: 'Do not wait for the new pods.',
  },
  timeout: {
    type: 'string',
    default: '0s',
    description:
      'How long to wait for the new pods, such as 90s or 5m. 0s: until Kubernetes gives them up (progressDeadlineSeconds).',
  },
  format: KUBECTL_FORMAT_FLAG,
} as const satisfies FlagTable

/** Time between two looks at the cluster. */
const LOOK_MS = 1000
/** Field manager with which `kubectl rollout restart` writes. */
const FIELD_MANAGER = 'kubectl-rollout'

export const restartCommand = withFlags(
  {
    usage: 'kubectl tutti restart NAME|model/NAME|ensemble/NAME|router [FLAGS]',
    flags: RESTART_FLAGS,
    result: RestartResult,
  },
  async ({ flags, positionals }, environment) => {
    const [text, ...more] = positionals
    if (text === undefined || more.length > 0) {
      throw new ServeError('FLAG_INVALID', `got ${positionals.length} names, want one`)
    }
    const timeoutMs = parseDuration(TIMEOUT_FLAG, flags.timeout)
    const isJson = flags.format === 'json'
    const out = (line: string): void => {
      if (!isJson) environment.out(`${line}\n`)
    }
    return await withCluster(flags, environment, async (cluster) => {
      const { namespace } = cluster
      const target = await findTarget(new Reader(cluster.client), { namespace, text })
      const { all, going, refused } = await restart(cluster, target, out)
      const followed = flags['no-wait'] ? [] : await follow(cluster, going, { timeoutMs, out })
      const ended = [...refused, ...followed]
      if (isJson) environment.out(renderRestart(all, target.missing, ended))
      const failures = ended.flatMap((one) => failureOf(one) ?? [])
      if (!isJson) reportFailures(failures, environment)
      return failures.length === 0 ? 0 : 1
    })
  },
)

/** Results of the patches; each Deployment is in `going` or `refused` too. */
interface Patched {
  readonly all: readonly RestartedPods[]
  readonly going: readonly RestartedPods[]
  readonly refused: readonly Ended[]
}

/** @throws ServeError before the first is touched, if one is not there or must not be touched. */
async function restart(
  cluster: Cluster,
  target: Target,
  out: (line: string) => void,
): Promise<Patched> {
  const { client, namespace } = cluster
  const deployments = await deploymentsOf(cluster, target)
  const patch = {
    spec: { template: { metadata: { annotations: { [RESTARTED_AT]: new Date().toISOString() } } } },
  }
  for (const name of target.missing) {
    out(`${target.title}: no Model ${printable(name)} in namespace ${namespace}`)
  }
  const all: RestartedPods[] = []
  const going: RestartedPods[] = []
  const refused: Ended[] = []
  for (const { title, deployment } of deployments) {
    const { name, uid } = deployment.metadata
    const one = { uid, title, deployment: name, models: modelsOfPods(deployment) }
    all.push(one)
    const answer = await client
      .mergePatch(DEPLOYMENT, keyOf(deployment), { fieldManager: FIELD_MANAGER, patch })
      .catch(toRefusal)
    if (answer instanceof KubeError) {
      refused.push({ ...one, state: 'failed', message: `not restarted: ${answer.message}` })
      continue
    }
    going.push(one)
    out(`${title}: restart of Deployment ${name}`)
  }
  return { all, going, refused }
}

interface Chosen {
  readonly title: string
  readonly deployment: Stored<Deployment>
}

async function deploymentsOf(cluster: Cluster, target: Target): Promise<readonly Chosen[]> {
  const { client, namespace } = cluster
  const { items } = await client.list(DEPLOYMENT, { namespace, labelSelector: SERVING_SELECTOR })
  const choose = (title: string, isWanted: (one: Stored<Deployment>) => boolean): Chosen => {
    const deployment = items.find(isWanted)
    if (deployment === undefined) {
      const problem = `${title} has no Deployment yet; kubectl tutti status says why`
      throw new ServeError('NOT_FOUND', problem)
    }
    if (deployment.spec.paused === true) {
      const one = `deployment/${deployment.metadata.name}`
      throw paused(one, `kubectl --namespace ${namespace} rollout resume ${one}`)
    }
    return { title, deployment }
  }
  if (target.isRouter) return [choose('Router', isOfRouter)]
  if (target.models.length === 0 && !target.hasBuiltins) {
    throw new ServeError('NOT_FOUND', `${target.title} runs no Model that is there`)
  }
  const models = target.models.map(({ metadata: { name }, spec }) => {
    if (spec?.paused === true) throw pausedBySpec(`model/${name}`, namespace)
    return choose(`Model ${name}`, (one) => modelsOfPods(one).includes(name))
  })
  const chosen = [...models, ...(target.hasBuiltins ? [choose('built-ins', isOfBuiltins)] : [])]
  // Models whose pods are the same are restarted once.
  const uids = chosen.map(({ deployment }) => deployment.metadata.uid)
  const once = chosen.filter(({ deployment }, i) => uids.indexOf(deployment.metadata.uid) === i)
  await refusePaused(cluster, once)
  return once
}

/**
 * Refuses pods that the operator leaves as they are for the sake of another Model in them, or of the Ensemble whose pods they are.
 *
 * @throws ServeError PAUSED
 */
async function refusePaused(
  { client, namespace }: Cluster,
  chosen: readonly Chosen[],
): Promise<void> {
  const reader = new Reader(client)
  const [models = [], ensembles = []] = await Promise.all([
    reader.list(MODEL, { namespace }),
    reader.list(ENSEMBLE, { namespace }),
  ])
  for (const { deployment } of chosen) {
    const names = modelsOfPods(deployment)
    const owner = deployment.metadata.labels?.[ENSEMBLE_LABEL]
    const model = models.filter(isPaused).find(({ metadata }) => names.includes(metadata.name))
    if (model !== undefined) throw pausedBySpec(`model/${model.metadata.name}`, namespace)
    const ensemble = ensembles.filter(isPaused).find(({ metadata }) => metadata.name === owner)
    if (ensemble !== undefined) throw pausedBySpec(`ensemble/${owner}`, namespace)
  }
}

function isPaused({ spec }: ModelObject | EnsembleObject): boolean {
  return spec?.paused === true
}

function pausedBySpec(what: string, namespace: string): ServeError {
  const patch = `--type merge --patch '{"spec":{"paused":false}}'`
  return paused(what, `kubectl --namespace ${namespace} patch ${what} ${patch}`)
}

function paused(what: string, command: string): ServeError {
  const text = `${what} is paused, so its pods stay as they are; ${command} lets it go on`
  return new ServeError('PAUSED', text)
}

function reportFailures(failures: readonly string[], environment: ProcessEnvironment): void {
  for (const line of failures) environment.err(`kubectl tutti restart: ${line}\n`)
}

async function follow(
  { client, namespace }: Cluster,
  restarted: readonly Restarted[],
  { timeoutMs, out }: { readonly timeoutMs: number; readonly out: (line: string) => void },
): Promise<readonly Ended[]> {
  const where = { namespace, labelSelector: SERVING_SELECTOR }
  const endMs = timeoutMs === 0 ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs
  return await followRollouts(restarted, {
    read: async () => {
      // The pods after their Deployments: what these count is there then.
      const { items: deployments } = await client.list(DEPLOYMENT, where)
      return { deployments, ...(await readPods(new Reader(client), where)) }
    },
    wait: async () => {
      const leftMs = endMs - performance.now()
      if (leftMs <= 0) return false
      await sleep(Math.min(LOOK_MS, leftMs), { clock: systemClock })
      return true
    },
    out,
  })
}
