import type { Pod, Stored } from '@tutti/kube'
import t from 'tap'
import { modelDeployment, modelPod, modelWorld, servedModel } from '../testing/model-world.ts'
import { MADE_AT, POD_CAUSES, POD_UID, type PodCause } from '../testing/pod-causes.ts'
import { conditionsOfEnsemble } from './ensemble/ensemble-conditions.ts'
import { findFailure } from './model/model-failure.ts'
import type { ModelPod } from './model/model-pods.ts'
import { conditionsOfModel } from './model/summarize.ts'
import { findPodTrouble } from './router/router-pods.ts'
import { conditionsOfRouter } from './router/router-status.ts'

/** A Deployment of which no pod is available, or none can be made. */
function deploymentOf({ refused }: Pick<PodCause, 'refused'>) {
  const failure = { type: 'ReplicaFailure', status: 'True' as const, reason: 'FailedCreate' }
  const counts = { replicas: 0, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0 }
  const all = { ...counts, replicas: 1, updatedReplicas: 1 }
  return modelDeployment({
    status:
      refused === undefined ? all : { ...counts, conditions: [{ ...failure, message: refused }] },
  })
}

function podsOf({
  refused,
  status,
  claims = [],
  isUnbound = false,
}: PodCause): readonly ModelPod[] {
  if (refused !== undefined) return []
  const { pod, ...rest } = modelPod('a', { status })
  const { nodeName: _, ...spec } = pod.spec
  const volumes = claims.map((claimName) => ({ name: 'v', persistentVolumeClaim: { claimName } }))
  const changed = {
    ...pod,
    metadata: { ...pod.metadata, uid: POD_UID, creationTimestamp: MADE_AT },
    spec: { ...(isUnbound ? spec : pod.spec), ...(volumes.length > 0 && { volumes }) },
  } as Stored<Pod>
  return [{ ...rest, pod: changed }]
}

function readyOfModel(cause: PodCause, o: Parameters<typeof modelWorld>[0] = {}) {
  const pods = podsOf(cause)
  const deployment = deploymentOf(cause)
  const { events } = cause
  const failure = findFailure(pods, deployment, { template: 't1', events })
  return conditionsOfModel(modelWorld({ pods, deployment, failure, ...o }))
}

/** A reason that a router tells in the form that stays. */
const OF_ROUTERS: Readonly<Record<string, string>> = { ImagePullBackOff: 'ErrImagePull' }
/** Pods that have ended are replaced; a router says nothing of them. */
const isEnded = ({ status }: PodCause): boolean => status.phase === 'Failed'

await t.test('at least 25 causes are tried, each with its own words', async (t) => {
  t.ok(POD_CAUSES.length >= 25)
  t.equal(new Set(POD_CAUSES.map(({ name }) => name)).size, POD_CAUSES.length)
})

for (const cause of POD_CAUSES) {
  const { name, reason, words } = cause
  await t.test(`Ready names the deepest cause: ${name}`, async (t) => {
    const { Ready, Degraded } = readyOfModel(cause)
    t.match(Ready, { status: 'False', reason })
    t.ok(Ready.message.includes(words), Ready.message)
    t.match(Degraded, { status: 'True', reason })

    // While the model was never loaded, an Ensemble waits for its signature.
    const checked = { accepted: false, reason: 'SchemaPending', message: 'not loaded' } as const
    const step = { name: 's', ready: false, reason: Ready.reason, message: Ready.message }
    const common = { generation: 1, isPaused: false, checked, routers: [] }
    const ensemble = conditionsOfEnsemble({ ...common, steps: [step] })
    t.match(ensemble.Ready, { status: 'False', reason })
    t.ok(ensemble.Ready.message.includes(words), ensemble.Ready.message)

    if (isEnded(cause)) return
    const pods = podsOf(cause).map(({ pod }) => pod)
    const trouble = findPodTrouble(deploymentOf(cause), pods, cause.events)
    const state = {
      generation: 1,
      trouble,
      deployment: undefined,
      hasServices: true,
      pods,
      views: [],
    }
    const router = conditionsOfRouter(state).Ready
    t.match(router, { status: 'False', reason: OF_ROUTERS[reason] ?? reason })
    t.ok(router.message.includes(words), router.message)
  })
}

const CREATING = POD_CAUSES.find(({ reason }) => reason === 'FailedMount')
const [MOUNT] = CREATING?.events?.filter(({ type }) => type === 'Warning') ?? []

await t.test('what was warned of is over once the pod goes on', async (t) => {
  if (CREATING === undefined || MOUNT === undefined) throw new Error('the table has no mount')
  const later = { ...MOUNT, deprecatedLastTimestamp: '2026-01-01T00:00:30Z' }
  const pulling = { ...later, type: 'Normal' as const, reason: 'Pulling', note: 'Pulling image' }
  const other = { ...later, regarding: { ...MOUNT.regarding, uid: 'another' } }
  const readyWith = (events: PodCause['events']) =>
    readyOfModel({ ...CREATING, events: events ?? [] }).Ready
  t.match(readyWith([MOUNT, pulling]), { reason: 'PodsNotReady' }, 'it is mounted')
  t.match(readyWith([other]), { reason: 'PodsNotReady' }, 'another pod')
  t.match(readyWith([MOUNT, { ...pulling, deprecatedLastTimestamp: '2026-01-01T00:00:09Z' }]), {
    reason: 'FailedMount',
  })
  const probe = POD_CAUSES.find(({ name }) => name === 'its readiness probe fails')
  if (probe === undefined) throw new Error('the table has no probe')
  const before = { ...MOUNT, deprecatedLastTimestamp: '2026-01-01T00:00:01Z' }
  t.match(readyOfModel({ ...probe, events: [before] }).Ready, { reason: 'PodsNotReady' }, 'it runs')
})

await t.test('a model that loads is not called unhealthy, one that failed says why', async (t) => {
  const probe = POD_CAUSES.find(({ name }) => name === 'its readiness probe fails')
  if (probe === undefined) throw new Error('the table has no probe')
  const [pod] = podsOf(probe)
  if (pod === undefined) throw new Error('no pod')
  const failureWith = (reason: string) => {
    const model = servedModel('r', { versions: [], reason })
    return findFailure([{ ...pod, model }], undefined, { events: probe.events })
  }
  t.equal(failureWith(''), undefined)
  t.match(failureWith('no config.pbtxt'), { reason: 'ModelLoadFailed' })
})

await t.test('a fetch that goes on is told, unless another pod says what is wrong', async (t) => {
  const state = { running: { startedAt: MADE_AT } }
  const fetch = { name: 'fetch', image: 'x', imageID: '', restartCount: 0, ready: false, state }
  const fetching = modelPod('b', { status: { phase: 'Pending', initContainerStatuses: [fetch] } })
  const deployment = deploymentOf({})
  t.match(conditionsOfModel(modelWorld({ pods: [fetching], deployment })).Ready, {
    reason: 'Fetching',
  })
})

await t.test('a refused object is told before pods that are not ready', async (t) => {
  const error = new Error('admission webhook "x" denied the request')
  const outcome = { resource: { kind: 'Deployment' }, key: { name: 'a' }, result: 'refused', error }
  const outcomes = [outcome] as never
  const pods = [modelPod('a', { status: { phase: 'Pending' } })]
  const { Ready } = conditionsOfModel(modelWorld({ pods, deployment: deploymentOf({}), outcomes }))
  t.match(Ready, { reason: 'Refused', message: /denied the request/ })
})

await t.test('new pods that do not come are told while old ones serve', async (t) => {
  const status = POD_CAUSES[0]?.status ?? {}
  const old = modelPod('old', { isCurrent: false })
  const pods = [old, modelPod('a', { status })]
  const counts = { replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 }
  const deployment = modelDeployment({ status: counts })
  const failure = findFailure(pods, deployment, { template: 't1' })
  const states = conditionsOfModel(modelWorld({ pods, deployment, failure }))
  t.match(states.WorkloadAvailable, { status: 'True' })
  t.match(states.Ready, { status: 'False', reason: 'ImagePullBackOff' })
})
