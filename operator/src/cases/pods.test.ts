// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { isGone } from '../testing/namespaced.ts'
import type { Play } from '../testing/pod-player.ts'
import { startNode } from '../testing/prepare-server.ts'

const NEEDED = ['kube-controller-manager', 'kube-scheduler'] as const

/** A Model with so many pods, and no controller that changes the number. */
const fixed = (replicas: number): PlainObject => ({ scaling: { provider: 'None', replicas } })

/** Its numbers are those, and all of its pods are of one revision. */
async function untilCounted(
  { plain, path }: CasePlace,
  name: string,
  replicas: number,
): Promise<PlainObject> {
  const isCounted = (status: PlainObject = {}): boolean => {
    const { revisions = [] } = status
    const served = revisions.length === 0 ? replicas : revisions[0].replicas
    const numbers = [status['desiredReplicas'], status['replicas'], status['readyReplicas'], served]
    return revisions.length < 2 && numbers.every((number) => number === replicas)
  }
  const model = await plain.until(
    path('models', name),
    (found) => isCounted(found?.['status']),
    120_000,
  )
  return model?.['status']
}

const stepsOf = ({ plain, path }: CasePlace): Promise<PlainObject[]> =>
  plain.list(`${path('pods')}?labelSelector=app.kubernetes.io%2Fcomponent%3Dstep`)

await t.test('pods of Models', { skip: withoutKube(...NEEDED) }, async (t) => {
  const rig = await openCaseRig(t)
  const { plain } = rig.server

  await t.test('case 33: an evicted pod is told of until another does its work', async (t) => {
    const place = await rig.openPlace()
    await place.startOperator(t)
    await place.applyModel('evicted')
    await place.ready('models', 'evicted')
    const [first] = await stepsOf(place)
    rig.plays.set('evicted', { kind: 'status', status: { phase: 'Pending' } })
    const status = { phase: 'Failed', reason: 'Evicted', message: 'low on memory' }
    await plain.patch(`${place.path('pods', first?.['metadata'].name)}/status`, { status })
    await place.condition('models', 'evicted', 'Degraded=True/Evicted')
    await place.condition('models', 'evicted', 'Ready=False/Evicted')
    rig.plays.delete('evicted')
    for (const { metadata, status: now } of await stepsOf(place)) {
      if (now.phase === 'Failed') continue
      await plain.delete(place.path('pods', metadata.name), { gracePeriodSeconds: 0 })
    }
    await place.ready('models', 'evicted')
    const model = await place.condition('models', 'evicted', 'Degraded=False/AsExpected')
    t.match(model['status'], { readyReplicas: 1, lastFailure: { reason: 'Evicted' } })
    t.equal((await stepsOf(place)).length, 2, 'what is left of it is still there')
  })

  await t.test('a hundred pods of one Model', async (t) => {
    const place = await rig.openPlace()
    const operator = await place.startOperator(t)
    await place.applyModel('many', fixed(100))
    await untilCounted(place, 'many', 100)
    await place.ready('models', 'many')
    const statuses = operator.proxy.writes.filter(({ path }) =>
      path.endsWith('/models/many/status'),
    )
    t.ok(statuses.length < 100, `${statuses.length} statuses`)
    await place.applyModel('many', fixed(3))
    await untilCounted(place, 'many', 3)
    await place.ready('models', 'many')
  })
})

const NODES = ['node-1', 'node-2', 'node-3'] as const

/** A pod that Kubernetes calls ready, at an address without a server. */
const DEAF: Play = {
  kind: 'status',
  status: {
    phase: 'Running',
    podIP: '127.81.255.254',
    podIPs: [{ ip: '127.81.255.254' }],
    conditions: ['Initialized', 'ContainersReady', 'Ready', 'PodScheduled'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: new Date().toISOString(),
    })),
  },
}

await t.test('pods on several nodes', { skip: withoutKube(...NEEDED) }, async (t) => {
  const rig = await openCaseRig(t)
  const { plain } = rig.server
  for (const name of NODES.slice(1)) t.teardown(await startNode(plain, name))
  const place = await rig.openPlace()
  await place.startOperator(t)

  await t.test('replicas are on different nodes, and in different zones', async (t) => {
    const nodesOf = async (name: string, replicas: number): Promise<string[]> => {
      await place.applyModel(name, fixed(replicas))
      await untilCounted(place, name, replicas)
      const pods = await stepsOf(place)
      const own = pods.filter(({ metadata }) => metadata.labels['tutti.dev/model'] === name)
      return own.map(({ spec }) => spec.nodeName)
    }
    t.same((await nodesOf('spread', 3)).toSorted(), NODES)
    const zones = { 'node-1': 'a', 'node-2': 'a', 'node-3': 'b' }
    for (const [node, zone] of Object.entries(zones)) {
      const labels = { 'topology.kubernetes.io/zone': zone }
      await plain.patch(`/api/v1/nodes/${node}`, { metadata: { labels } })
    }
    t.ok((await nodesOf('zoned', 2)).includes('node-3'), 'the only node of zone b has one of two')
    for (const name of ['spread', 'zoned']) await plain.delete(place.path('models', name))
    await plain.until(place.path('deployments', 'zoned-step'), isGone)
  })

  // Of them 42 fit on a node.
  const spec = { ...fixed(120), resources: { requests: { cpu: '1500m' } } }
  await t.test('pods without an answer count, and make no Model ready', async (t) => {
    rig.plays.set('many', DEAF)
    await place.applyModel('many', spec)
    const status = await untilCounted(place, 'many', 120)
    t.equal(status['signature'], undefined)
    await place.condition('models', 'many', 'WorkloadAvailable=True/Available')
    await place.condition('models', 'many', 'SchemaVerified=Unknown/Pending')
    await place.condition('models', 'many', 'Ready=False/NoReplica')
  })

  await t.test('a node is taken away: pods that do not fit say so, until it is back', async (t) => {
    const node = '/api/v1/nodes/node-2'
    const taints = [{ key: 'example.com/gone', effect: 'NoExecute' }]
    await plain.patch(node, { spec: { taints } })
    const model = await place.condition('models', 'many', 'Degraded=True/Unschedulable')
    t.match(model['status'].lastFailure.message, /1 node\(s\) had untolerated taint/)
    await plain.patch(node, { spec: { taints: null } })
    await place.condition('models', 'many', 'Degraded=False/AsExpected')
    await untilCounted(place, 'many', 120)
  })
})
