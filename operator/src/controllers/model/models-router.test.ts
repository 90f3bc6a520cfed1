// needs: apiserver
import { until } from '@tutti/chassis/testing'
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import {
  conditionOf,
  deploymentPath,
  isModelReady,
  openModelCluster,
} from '../../testing/model-cluster.ts'
import { settled } from '../../testing/model-looks.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

const ROUTER = {
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Router',
  metadata: { name: 'default' },
}

const OFF = { args: [], env: 0, ports: 0, isAllowed: false }

/** Reads what a Deployment of steps and their policy say of direct connections. */
function directOf(deployment: PlainObject, policy: PlainObject) {
  const { args, env, ports } = deployment['spec'].template.spec.containers[0]
  const at = args.indexOf('--direct')
  return {
    args: at < 0 ? [] : args.slice(at, at + 4),
    env: env.filter((one: PlainObject) => one['name'] === 'POD_IP').length,
    ports: ports.filter((one: PlainObject) => one['containerPort'] === 8003).length,
    isAllowed: JSON.stringify(policy).includes('"port":8003'),
  }
}

function templateOf(found: PlainObject): string {
  return JSON.stringify(found['spec'].template)
}

await t.test('what a Router says reaches the Models of its namespace', { skip }, async (t) => {
  const cluster = await openModelCluster(t)

  await t.test('a Model says why its namespace has no router, while it has none', async (t) => {
    const namespace = await cluster.namespace({ hasRouter: false })
    const untilRoutable = (wanted: string): Promise<PlainObject> =>
      cluster.untilModel(namespace, 'yolo', (model) => conditionOf(model, 'Routable') === wanted)
    await cluster.applyModel(namespace, 'yolo')
    await untilRoutable('False/NoRouters')
    const trouble = { reason: 'RouterRefused', message: 'Service "tutti-router-grpc": no' }
    const router = `/apis/tutti.dev/v1alpha1/namespaces/${namespace}/routers`
    await cluster.plain.create(router, { ...ROUTER, spec: {} })
    const tell = async (status: string): Promise<void> => {
      const lastTransitionTime = '2026-01-01T00:00:00Z'
      const conditions = [{ type: 'Degraded', status, lastTransitionTime, ...trouble }]
      await cluster.plain.patch(`${router}/default/status`, { status: { conditions } })
    }
    await tell('True')
    const { status } = await untilRoutable('False/RouterRefused')
    t.match(
      status.conditions.find((one: PlainObject) => one['type'] === 'Routable'),
      trouble,
    )
    await tell('False')
    await untilRoutable('False/NoRouters')
    await tell('True')
    await cluster.startRouter(namespace)
    await untilRoutable('True/Routed')
  })

  await t.test('another stepTransport replaces the pods of Models', async (t) => {
    const { plain } = cluster
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo')
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    const path = deploymentPath(namespace, 'yolo')
    const policyPath = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies/yolo-step`
    const routers = `/apis/tutti.dev/v1alpha1/namespaces/${namespace}/routers`
    const before = await plain.get(path)
    t.same(directOf(before, await plain.get(policyPath)), OFF)
    const podsOf = async () =>
      (await plain.list(`/api/v1/namespaces/${namespace}/pods`))
        .filter(({ metadata }) => metadata.labels['tutti.dev/model'] === 'yolo')
        .map(({ metadata }): string => metadata.uid)
    const [first = ''] = await podsOf()
    await plain.create(routers, { ...ROUTER, spec: { scaling: { replicas: 2 } } })
    await settled(cluster)
    t.equal(templateOf(await plain.get(path)), templateOf(before), 'a Router alone changes nothing')
    await plain.patch(`${routers}/default`, { spec: { stepTransport: 'TLS' } })
    await plain.until(
      path,
      (found) => found !== undefined && templateOf(found) !== templateOf(before),
    )
    t.same(directOf(await plain.get(path), await plain.get(policyPath)), {
      args: ['--direct', 'tls', '--direct-address', '[$(POD_IP)]:8003'],
      env: 1,
      ports: 1,
      isAllowed: true,
    })
    await until('another pod serves', async () => !(await podsOf()).includes(first))
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    await plain.patch(`${routers}/default`, { spec: { stepTransport: 'NATS' } })
    await plain.until(
      path,
      (found) => found !== undefined && templateOf(found) === templateOf(before),
    )
    t.same(directOf(await plain.get(path), await plain.get(policyPath)), OFF)
    // Pods are played until then, by requests to a server that ends with the test.
    await cluster.untilModel(namespace, 'yolo', isModelReady)
  })
})
