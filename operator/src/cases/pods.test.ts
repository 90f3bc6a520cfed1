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

/** The pods of the step, once there is one. */
async function untilMade(place: CasePlace): Promise<readonly PlainObject[]> {
  const { plain, path } = place
  await plain.until(path('deployments', 'late-step'), (found) => found?.['status']?.replicas === 1)
  return await stepsOf(place)
}

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

  await t.test(
    'what only events tell of a late pod is told, and over once it goes on',
    async (t) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      const main = { name: 'main', image: 'x', imageID: '', ready: false, restartCount: 0 }
      const state = { waiting: { reason: 'ContainerCreating' } }
      const conditions = [{ type: 'ContainersReady', status: 'False' }]
      const status = { phase: 'Pending', conditions, containerStatuses: [{ ...main, state }] }
      rig.plays.set('late', { kind: 'status', status })
      await place.applyModel('late')
      const [pod] = await untilMade(place)
      const { name, namespace, uid } = pod?.['metadata'] ?? {}
      const involvedObject = { kind: 'Pod', apiVersion: 'v1', name, namespace, uid }
      const note = 'MountVolume.SetUp failed for volume "x" : secret "y" not found'
      const put = (reason: string, type: string, message: string) => {
        const at = new Date().toISOString().replace(/\.\d+/, '')
        const times = { firstTimestamp: at, lastTimestamp: at, count: 1 }
        const source = { component: 'kubelet', host: 'node-1' }
        const metadata = { name: `${name}.${reason.toLowerCase()}`, namespace }
        const event = { metadata, involvedObject, reason, message, type, source, ...times }
        return plain.create(`/api/v1/namespaces/${namespace}/events`, event)
      }
      await put('FailedMount', 'Warning', note)
      const failed = await place.condition('models', 'late', 'Ready=False/FailedMount')
      t.match(failed['status'].lastFailure, { reason: 'FailedMount', message: note, pod: name })
      rig.plays.set('late', { kind: 'ready' })
      await plain.delete(place.path('pods', name), { gracePeriodSeconds: 0 })
      await place.ready('models', 'late')
      await place.condition('models', 'late', 'Degraded=False/AsExpected')
    },
  )

  await t.test('a limit range that refuses all pods is told in its words', async (t) => {
    const place = await rig.openPlace()
    await place.startOperator(t)
    await plain.create(place.path('limitranges'), {
      metadata: { name: 'small' },
      spec: { limits: [{ type: 'Container', max: { memory: '1Mi' } }] },
    })
    await place.applyModel('large', { resources: { limits: { memory: '1Gi' } } })
    const model = await place.condition('models', 'large', 'Ready=False/FailedCreate')
    t.match(model['status'].lastFailure.message, /maximum memory usage per Container is 1Mi/)
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

  // 42 of these pods fit on a node.
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
