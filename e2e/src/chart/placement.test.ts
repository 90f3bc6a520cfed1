// needs: apiserver
import { type ApiServer, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { createNamespace } from './chart-pods.ts'
import { find, type Rendered, render } from './helm.ts'

const WITH_KUBE = { skip: withoutKube('helm', 'kube-controller-manager', 'kube-scheduler') }

const NAMESPACE = '/namespaces/tutti-system'
const PODS = { nats: 3, operator: 2 } as const
type Component = keyof typeof PODS

/** Their zones: the scheduler weighs the third node of a zone against the only one of another. */
const ZONES = { 'node-1': 'a', 'node-2': 'a', 'node-3': 'a', 'node-4': 'b', 'node-5': 'c' } as const
type Node = keyof typeof ZONES

async function createNode({ plain }: ApiServer, name: Node): Promise<void> {
  const resources = { cpu: '64', memory: '256Gi', pods: '500' }
  const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': ZONES[name] }
  const status = { capacity: resources, allocatable: resources }
  await plain.create('/api/v1/nodes', { metadata: { name, labels }, status })
  // The API server taints each new node, until what is not here finds it ready.
  await plain.patch(`/api/v1/nodes/${name}`, { spec: { taints: null } })
}

const workloadsOf = (objects: readonly Rendered[]): Readonly<Record<Component, Rendered>> => ({
  nats: find(objects, 'StatefulSet', 'tutti-nats'),
  operator: find(objects, 'Deployment', 'tutti-operator'),
})

const pathOf = ({ kind, metadata: { name } }: Rendered): string =>
  `/apis/apps/v1${NAMESPACE}/${kind.toLowerCase()}s/${name}`

/** The nodes on which the scheduler has put all pods of a component. */
async function nodesOf({ plain }: ApiServer, component: Component): Promise<readonly Node[]> {
  const selector = encodeURIComponent(`app.kubernetes.io/component=${component}`)
  const path = `/api/v1${NAMESPACE}/pods?labelSelector=${selector}`
  await plain.untilList(path, (pods) => {
    return pods.length === PODS[component] && pods.every(({ spec }) => spec.nodeName !== undefined)
  })
  return (await plain.list(path)).map(({ spec }) => spec.nodeName)
}

async function zonesOf(server: ApiServer, component: Component): Promise<readonly string[]> {
  return (await nodesOf(server, component)).map((name) => ZONES[name])
}

/** Takes workloads and their pods away, as no kubelet does here. */
async function stop({ plain }: ApiServer, workloads: readonly Rendered[]): Promise<void> {
  for (const one of workloads) await plain.delete(pathOf(one), { propagationPolicy: 'Orphan' })
  for (const one of workloads) await plain.until(pathOf(one), (found) => found === undefined)
  const sets = `/apis/apps/v1${NAMESPACE}/replicasets`
  for (const { metadata } of await plain.list(sets)) {
    await plain.delete(`${sets}/${metadata.name}`, { propagationPolicy: 'Orphan' })
  }
  await plain.untilList(`${sets}?limit=500`, (found) => found.length === 0)
  const pods = `/api/v1${NAMESPACE}/pods`
  for (const { metadata } of await plain.list(pods)) {
    await plain.delete(`${pods}/${metadata.name}`, { gracePeriodSeconds: 0 })
  }
}

await t.test('pods of operator and NATS, as a real scheduler places them', WITH_KUBE, async (t) => {
  // Nodes without a kubelet would be taken for lost.
  const controllerFlags = ['--controllers=*,-node-lifecycle-controller']
  const server = await startApiServer({ hasControllers: true, controllerFlags })
  t.teardown(() => server.stop())
  const { plain } = server
  await createNamespace(server, 'tutti-system')
  const objects = await render({ 'nats.replicas': PODS.nats, 'operator.replicas': PODS.operator })
  for (const object of objects.filter(({ kind }) => kind === 'ServiceAccount')) {
    await plain.create(`/api/v1${NAMESPACE}/serviceaccounts`, object)
  }
  const workloads = workloadsOf(objects)
  const start = async (): Promise<void> => {
    for (const one of Object.values(workloads)) await plain.apply(pathOf(one), one, 'helm')
  }

  await createNode(server, 'node-1')
  await t.test('all on one node, where there is one', async (t) => {
    await start()
    t.same(await nodesOf(server, 'nats'), ['node-1', 'node-1', 'node-1'])
    t.same(await nodesOf(server, 'operator'), ['node-1', 'node-1'])
  })

  await stop(server, Object.values(workloads))
  for (const name of ['node-2', 'node-3', 'node-4', 'node-5'] as const) {
    await createNode(server, name)
  }
  await t.test('each in a zone of its own, where there are as many', async (t) => {
    await start()
    t.same((await zonesOf(server, 'nats')).toSorted(), ['a', 'b', 'c'])
    t.equal(new Set(await zonesOf(server, 'operator')).size, 2)
  })
})

await t.test(
  'what values say of placement replaces ours',
  { skip: withoutKube('helm') },
  async (t) => {
    const affinity = { podAffinity: {} }
    const topologySpreadConstraints = [{ maxSkew: 2 }]
    const own = { affinity, topologySpreadConstraints }
    for (const one of Object.values(workloadsOf(await render({ nats: own, operator: own })))) {
      t.same(one['spec'].template.spec.affinity, affinity)
      t.same(one['spec'].template.spec.topologySpreadConstraints, topologySpreadConstraints)
    }
  },
)
