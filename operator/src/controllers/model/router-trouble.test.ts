// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { conditionOf, openModelCluster } from '../../testing/model-cluster.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

await t.test(
  'a Model says why its namespace has no router, while it has none',
  { skip },
  async (t) => {
    const cluster = await openModelCluster(t)
    const namespace = await cluster.namespace({ hasRouter: false })
    const untilRoutable = (wanted: string): Promise<PlainObject> =>
      cluster.untilModel(namespace, 'yolo', (model) => conditionOf(model, 'Routable') === wanted)
    await cluster.applyModel(namespace, 'yolo')
    await untilRoutable('False/NoRouters')
    const trouble = { reason: 'RouterRefused', message: 'Service "tutti-router-grpc": no' }
    const router = `/apis/tutti.dev/v1alpha1/namespaces/${namespace}/routers`
    const typeMeta = { apiVersion: 'tutti.dev/v1alpha1', kind: 'Router' }
    await cluster.plain.create(router, { ...typeMeta, metadata: { name: 'default' }, spec: {} })
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
  },
)
