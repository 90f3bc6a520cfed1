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
    cluster.states.set(namespace, trouble)
    const { status } = await untilRoutable('False/RouterRefused')
    t.match(
      status.conditions.find((one: PlainObject) => one['type'] === 'Routable'),
      trouble,
    )
    cluster.states.set(namespace, undefined)
    await untilRoutable('False/NoRouters')
    cluster.states.set(namespace, trouble)
    await cluster.startRouter(namespace)
    await untilRoutable('True/Routed')
  },
)
