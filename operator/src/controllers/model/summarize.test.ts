import { ModelStatus } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import { HORIZONTAL_POD_AUTOSCALER, KubeError, SERVICE } from '@tutti/kube'
import t from 'tap'
import { toChildRecord } from '../../runtime/child-record.ts'
import { modelDeployment, modelPod, modelWorld, servedModel } from '../../testing/model-world.ts'
import { storedObject } from '../../testing/stored-object.ts'
import type { ModelWorld } from './model-world.ts'
import { conditionsOfModel, summarize } from './summarize.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const LATER = NOW + 60_000

function textsOf(world: ModelWorld): Record<string, string> {
  return Object.fromEntries(
    Object.entries(conditionsOfModel(world)).map(([type, { status, reason }]) => [
      type,
      `${status}/${reason}`,
    ]),
  )
}

const GOOD = {
  Accepted: 'True/Accepted',
  ArtifactsReady: 'True/Mounted',
  SchemaVerified: 'True/Discovered',
  WorkloadAvailable: 'True/Available',
  Routable: 'True/Routed',
  Progressing: 'False/Complete',
  Degraded: 'False/AsExpected',
  Suspended: 'False/NotSuspended',
  Ready: 'True/Ready',
}

const key = { namespace: 'ns', name: 'yolo-step' }
const METRICS = [
  {
    type: 'Resource' as const,
    resource: { name: 'cpu', target: { type: 'Utilization' as const, averageUtilization: 80 } },
  },
]
const TOLERANT = { scaleUp: { tolerance: '50m' } }
const invalid = new KubeError({ status: 422, reason: 'Invalid', message: 'spec.x: no' })

const CASES: readonly {
  readonly name: string
  readonly world: ModelWorld
  readonly wanted: Readonly<Record<string, string>>
}[] = [
  { name: 'all is well', world: modelWorld(), wanted: {} },
  {
    name: 'artifacts are fetched',
    world: modelWorld({ fields: { storageUri: 's3://bucket/x' } }),
    wanted: { ArtifactsReady: 'True/Fetched' },
  },
  {
    name: 'artifacts are copied',
    world: modelWorld({ fields: { storageUri: 'image://x:1/y' } }),
    wanted: { ArtifactsReady: 'True/Fetched' },
  },
  {
    name: 'the name is taken',
    world: modelWorld({
      refusal: { condition: 'Accepted', reason: 'NameConflict', message: 'm' },
    }),
    wanted: {
      Accepted: 'False/NameConflict',
      Progressing: 'False/NameConflict',
      Degraded: 'True/NameConflict',
      Ready: 'False/NameConflict',
    },
  },
  {
    name: 'a spec is refused that pods of an earlier one do not fit',
    world: modelWorld({
      fields: { inputs: [{ name: 'other', datatype: 'FP32', shape: [1] }] },
      refusal: { condition: 'Accepted', reason: 'HostAccessNotAllowed', message: 'm' },
    }),
    wanted: {
      Accepted: 'False/HostAccessNotAllowed',
      SchemaVerified: 'Unknown/HostAccessNotAllowed',
      Progressing: 'False/HostAccessNotAllowed',
      Degraded: 'True/HostAccessNotAllowed',
      Ready: 'False/HostAccessNotAllowed',
    },
  },
  {
    name: 'the Secret is missing while old pods serve',
    world: modelWorld({
      refusal: { condition: 'ArtifactsReady', reason: 'SecretNotFound', message: 'm' },
    }),
    wanted: {
      ArtifactsReady: 'False/SecretNotFound',
      Progressing: 'False/SecretNotFound',
      Degraded: 'True/SecretNotFound',
      Ready: 'False/SecretNotFound',
    },
  },
  {
    name: 'scaling up is no outage',
    world: modelWorld({
      fields: { scaling: { maxReplicas: 5 } },
      deployment: modelDeployment({
        replicas: 5,
        status: { replicas: 5, updatedReplicas: 5, availableReplicas: 1 },
      }),
    }),
    wanted: { Progressing: 'True/RollingOut' },
  },
  {
    name: 'fewer than the fewest are not enough',
    world: modelWorld({
      fields: { scaling: { minReplicas: 3 } },
      deployment: modelDeployment({ replicas: 3, status: { availableReplicas: 2 } }),
    }),
    wanted: {
      WorkloadAvailable: 'False/PodsNotReady',
      Progressing: 'True/RollingOut',
      Ready: 'False/PodsNotReady',
    },
  },
  {
    name: 'a rollout that may miss one pod',
    world: modelWorld({
      fields: { scaling: { minReplicas: 3 }, rollout: { maxUnavailable: '34%' } },
      deployment: modelDeployment({ replicas: 3, status: { availableReplicas: 2 } }),
    }),
    wanted: { Progressing: 'True/RollingOut' },
  },
  {
    name: 'no pods are wanted',
    world: modelWorld({
      fields: { scaling: { provider: 'None', replicas: 0 } },
      deployment: modelDeployment({ replicas: 0 }),
      pods: [],
    }),
    wanted: {
      ArtifactsReady: 'Unknown/Pending',
      SchemaVerified: 'Unknown/Pending',
      WorkloadAvailable: 'False/ScaledToZero',
      Routable: 'False/NoReplica',
      Ready: 'False/ScaledToZero',
    },
  },
  {
    name: 'old pods are still there',
    world: modelWorld({
      deployment: modelDeployment({ status: { replicas: 2, updatedReplicas: 1 } }),
    }),
    wanted: { Progressing: 'True/RollingOut', Ready: 'False/RollingOut' },
  },
  {
    name: 'the Deployment is paused, and a rollout waits',
    world: modelWorld({
      deployment: modelDeployment({
        isPaused: true,
        status: { replicas: 1, updatedReplicas: 0, availableReplicas: 1 },
      }),
    }),
    wanted: { Progressing: 'False/DeploymentPaused', Ready: 'False/DeploymentPaused' },
  },
  {
    name: 'the Deployment is paused, and is scaled',
    world: modelWorld({
      deployment: modelDeployment({
        replicas: 2,
        isPaused: true,
        status: { replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
      }),
    }),
    wanted: { Progressing: 'True/RollingOut' },
  },
  {
    name: 'the Deployment has not been looked at since it changed',
    world: modelWorld({ deployment: modelDeployment({ status: { observedGeneration: 0 } }) }),
    wanted: { Progressing: 'True/Reconciling', Ready: 'Unknown/Reconciling' },
  },
  {
    name: 'a rollout that takes too long',
    world: modelWorld({
      deployment: modelDeployment({
        status: {
          replicas: 2,
          conditions: [
            { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' },
          ],
        },
      }),
    }),
    wanted: {
      Progressing: 'False/ProgressDeadlineExceeded',
      Ready: 'False/ProgressDeadlineExceeded',
    },
  },
  {
    name: 'no router is ready',
    world: modelWorld({ routers: [] }),
    wanted: { Routable: 'False/NoRouters', Ready: 'False/NoRouters' },
  },
  {
    name: 'no router is ready, and it is known why',
    world: modelWorld({ routers: [], trouble: { reason: 'RouterRefused', message: 'm' } }),
    wanted: { Routable: 'False/RouterRefused', Ready: 'False/RouterRefused' },
  },
  {
    name: 'the router is not as it is wanted, and serves',
    world: modelWorld({ trouble: { reason: 'RouterSettingsInvalid', message: 'm' } }),
    wanted: {},
  },
  {
    name: 'a router does not answer',
    world: modelWorld({
      routers: [{ pod: 'r', error: new ServeError('POD_UNREACHABLE', 'pod "r": away') }],
    }),
    wanted: { Routable: 'Unknown/RouterUnreachable', Ready: 'False/RouterUnreachable' },
  },
  {
    name: 'a router serves another revision',
    world: modelWorld({
      pods: [modelPod('a', { model: servedModel('r2') })],
      accepted: [{ version: 1, revision: 'r2' }],
    }),
    wanted: { Routable: 'False/NotRouted', Ready: 'False/NotRouted' },
  },
  {
    name: 'what a pod serves is not accepted',
    world: modelWorld({ accepted: [] }),
    wanted: { Routable: 'False/NotAccepted', Ready: 'False/NotAccepted' },
  },
  {
    name: 'an object is in the way',
    world: modelWorld({
      outcomes: [{ resource: SERVICE, key, result: 'nameConflict', message: 'm' }],
    }),
    wanted: { Progressing: 'False/ObjectConflict', Degraded: 'True/ObjectConflict' },
  },
  {
    name: 'a Service is being deleted and held',
    world: modelWorld({
      outcomes: [{ resource: SERVICE, key, result: 'terminating', finalizers: ['a.b/stay'] }],
    }),
    wanted: { Progressing: 'False/Terminating', Degraded: 'True/Terminating' },
  },
  {
    name: 'a Service is being deleted and goes by itself',
    world: modelWorld({
      outcomes: [
        { resource: SERVICE, key, result: 'terminating', finalizers: ['foregroundDeletion'] },
      ],
    }),
    wanted: { Progressing: 'True/Terminating' },
  },
  {
    name: 'one Service goes by itself, the next is held',
    world: modelWorld({
      outcomes: [
        { resource: SERVICE, key, result: 'terminating', finalizers: ['orphan'] },
        {
          resource: SERVICE,
          key,
          result: 'terminating',
          finalizers: ['foregroundDeletion', 'a.b/stay'],
        },
      ],
    }),
    wanted: { Progressing: 'False/Terminating', Degraded: 'True/Terminating' },
  },
  {
    name: 'an edit that the pods do not fit is paused',
    world: modelWorld({
      fields: { paused: true, inputs: [{ name: 'other', datatype: 'FP32', shape: [1] }] },
      template: 't2',
    }),
    wanted: {
      SchemaVerified: 'Unknown/Paused',
      Progressing: 'False/Paused',
      Ready: 'False/Paused',
    },
  },
  ...[undefined, '50m'].map((tolerance) => ({
    name: `the server has the tolerance ${tolerance}`,
    world: modelWorld({
      fields: { scaling: { provider: 'HPA', metrics: METRICS, behavior: TOLERANT } },
      outcomes: [
        {
          resource: HORIZONTAL_POD_AUTOSCALER,
          key,
          result: 'unchanged',
          object: toChildRecord(storedObject({ name: 'yolo-step' }, {}), {
            spec: { behavior: { scaleUp: { selectPolicy: 'Max', tolerance } } },
          }),
        },
      ],
    }),
    wanted: tolerance === undefined ? { Degraded: 'True/FieldLeftOut' } : {},
  })),
  {
    name: 'somebody else writes the replicas',
    world: modelWorld({ replicasWriter: { name: 'HorizontalPodAutoscaler "x"', againMs: 1 } }),
    wanted: { Degraded: 'True/ReplicasNotOwned' },
  },
  {
    name: 'the budget blocks every drain',
    world: modelWorld({ fields: { disruptionBudget: { minAvailable: 1 } } }),
    wanted: { Accepted: 'True/AcceptedWithWarnings' },
  },
  {
    name: 'the server refuses the first Deployment',
    world: (() => {
      const { deployment: _, ...world } = modelWorld({
        pods: [],
        outcomes: [{ resource: SERVICE, key, result: 'refused', error: invalid }],
      })
      return world
    })(),
    wanted: {
      ArtifactsReady: 'Unknown/Pending',
      SchemaVerified: 'Unknown/Pending',
      WorkloadAvailable: 'False/Refused',
      Routable: 'False/NoReplica',
      Progressing: 'False/Refused',
      Degraded: 'True/Refused',
      Ready: 'False/Refused',
    },
  },
  {
    name: 'a declared datatype is another',
    world: modelWorld({
      fields: { inputs: [{ name: 'image', datatype: 'UINT8', shape: [3, -1] }] },
    }),
    wanted: {
      SchemaVerified: 'False/SchemaMismatch',
      Degraded: 'True/SchemaMismatch',
      Ready: 'False/SchemaMismatch',
    },
  },
]

await t.test(
  'a Model says where it is once a revision is accepted, and how many pods',
  async (t) => {
    const deployment = modelDeployment({ replicas: 3, status: { readyReplicas: 2 } })
    t.match(summarize(modelWorld({ deployment }), NOW), {
      url: 'http://tutti-router-http.ns.svc:8000',
      grpcUrl: 'tutti-router-grpc.ns.svc:8001',
      podsReady: '2/3',
    })
    const { deployment: _, ...world } = modelWorld({ accepted: [], pods: [] })
    const status = summarize(world, NOW)
    t.equal(status.podsReady, '0/0')
    t.notOk('url' in status)
  },
)

for (const { name, world, wanted } of CASES) {
  await t.test(`conditions when ${name}`, async (t) => {
    t.same(textsOf(world), { ...GOOD, ...wanted })
    t.ok(ModelStatus.safeParse(summarize(world, NOW)).success)
  })
}

await t.test('the same world gives the same status at another time', async (t) => {
  for (const { world } of CASES) {
    const before = summarize(world, NOW)
    t.same(summarize({ ...world, before }, LATER), before)
  }
})

await t.test('a condition moves its time only with its status', async (t) => {
  const before = summarize(modelWorld(), NOW)
  const after = summarize(modelWorld({ before, routers: [] }), LATER)
  const timeOf = (type: string) =>
    after.conditions?.find((condition) => condition.type === type)?.lastTransitionTime
  t.equal(timeOf('Accepted'), '2026-01-01T00:00:00Z')
  t.equal(timeOf('Ready'), '2026-01-01T00:01:00Z')
})

await t.test('what was found stays known while no pod can be asked', async (t) => {
  const before = summarize(modelWorld(), NOW)
  const world = modelWorld({ before, pods: [] })
  t.same(summarize(world, LATER).signature, before.signature)
  t.equal(summarize(world, LATER).latestReadyRevision, 'r1')
  t.equal(textsOf(world)['SchemaVerified'], 'True/Discovered')
  const next = { ...world.model, metadata: { ...world.model.metadata, generation: 2 } }
  t.equal(textsOf({ ...world, model: next })['SchemaVerified'], 'Unknown/Pending')
})

await t.test('the last failure stays, with the time when it was first seen', async (t) => {
  const failure = { reason: 'OOMKilled', message: 'm', pod: 'a', container: 'main', exitCode: 137 }
  const first = summarize(modelWorld({ failure }), NOW)
  t.same(first.lastFailure, { ...failure, time: '2026-01-01T00:00:00Z' })
  const again = summarize(modelWorld({ failure, before: first }), LATER)
  t.same(again.lastFailure, first.lastFailure)
  t.same(summarize(modelWorld({ before: again }), LATER).lastFailure, first.lastFailure)
  const other = summarize(modelWorld({ failure: { ...failure, pod: 'b' }, before: again }), LATER)
  t.equal(other.lastFailure?.time, '2026-01-01T00:01:00Z')
})

await t.test('a failure that the server stores is the same failure at the next look', async (t) => {
  const failure = { reason: 'ModelLoadFailed', message: `x${'\u{1F600}'.repeat(3000)}`, pod: 'a' }
  const first = summarize(modelWorld({ failure }), NOW)
  t.ok(first.lastFailure?.message.isWellFormed())
  // As the server has it: JSON in UTF-8.
  const before = JSON.parse(Buffer.from(JSON.stringify(first)).toString())
  t.same(summarize(modelWorld({ failure, before }), LATER), first)
})
