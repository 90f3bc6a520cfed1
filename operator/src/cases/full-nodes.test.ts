// needs: apiserver
import { until } from '@tutti/chassis/testing'
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { openCaseRig } from '../testing/case-rig.ts'

const DEVICE = 'nvidia.com/gpu'

/** A Model of which each pod has a device. */
const onDevice = (replicas: number, note: string, rollout?: PlainObject): PlainObject => ({
  accelerator: { resourceName: DEVICE, count: 1 },
  scaling: { provider: 'None', replicas },
  podTemplate: { metadata: { annotations: { note } } },
  ...(rollout && { rollout }),
})

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

await t.test('rollouts on a node without a free device', { skip }, async (t) => {
  const rig = await openCaseRig(t)
  const { plain } = rig.server
  const offer = (count: number) => {
    const devices = { [DEVICE]: String(count) }
    return plain.send('PATCH', '/api/v1/nodes/node-1/status', {
      body: { status: { capacity: devices, allocatable: devices } },
      contentType: 'application/strategic-merge-patch+json',
    })
  }
  const open = async () => {
    const place = await rig.openPlace()
    const operator = await place.startOperator(t)
    const podsOf = (name: string): Promise<PlainObject[]> =>
      plain.list(`${place.path('pods')}?labelSelector=tutti.dev%2Fmodel%3D${name}`)
    const strategyOf = async (name: string): Promise<PlainObject> =>
      (await plain.get(place.path('deployments', `${name}-step`)))['spec'].strategy.rollingUpdate
    /** Waits until the Model has so many ready pods, and no others, all of which are as wanted. */
    const untilAll = (name: string, replicas: number, isWanted: (pod: PlainObject) => boolean) =>
      until(`${name} has ${replicas} such pods`, async () => {
        const { status } = await plain.get(place.path('models', name))
        const pods = await podsOf(name)
        return status.readyReplicas === replicas && pods.length === replicas && pods.every(isWanted)
      })
    const untilOf = (name: string, note: string, replicas: number) =>
      untilAll(name, replicas, (pod) => pod['metadata'].annotations.note === note)
    return { place, operator, podsOf, strategyOf, untilAll, untilOf }
  }

  await t.test('it waits, and says what to set; then it replaces', async (t) => {
    await offer(1)
    const { place, operator, podsOf, strategyOf, untilAll, untilOf } = await open()
    await place.applyModel('yolo', onDevice(1, 'a'))
    await place.ready('models', 'yolo')
    const [old] = await podsOf('yolo')
    await place.applyModel('yolo', onDevice(1, 'b'))
    const waiting = await place.condition('models', 'yolo', 'Degraded=True/NoFreeDevice')
    const told = waiting['status'].conditions.find(({ type }: PlainObject) => type === 'Degraded')
    t.match(told.message, /Insufficient nvidia\.com\/gpu.* set rollout\.whenFull: Replace/)
    await operator.atRest()
    t.same(await strategyOf('yolo'), { maxSurge: 1, maxUnavailable: 0 })
    const kept = (await podsOf('yolo')).find(
      ({ metadata }) => metadata.uid === old?.['metadata'].uid,
    )
    t.equal(kept?.['metadata'].deletionTimestamp, undefined, 'the old pod serves')
    await place.applyModel('yolo', onDevice(1, 'b', { whenFull: 'Replace' }))
    await untilOf('yolo', 'b', 1)
    await place.ready('models', 'yolo')
    await place.condition('models', 'yolo', 'Degraded=False/AsExpected')
    await operator.atRest()
    t.same(await strategyOf('yolo'), { maxSurge: 1, maxUnavailable: 0 }, 'for this rollout alone')
    t.comment('a restart has pods of the same template')
    const [before] = await podsOf('yolo')
    await plain.patch(place.path('deployments', 'yolo-step'), {
      spec: {
        template: {
          metadata: { annotations: { note: 'b', 'kubectl.kubernetes.io/restartedAt': 'now' } },
        },
      },
    })
    await untilAll('yolo', 1, ({ metadata }) => metadata.uid !== before?.['metadata'].uid)
    await place.applyModel('yolo', onDevice(0, 'b'))
  })

  await t.test('of several pods one goes at a time, and a free device is used', async () => {
    await offer(3)
    const { place, podsOf, untilOf } = await open()
    const replace = { whenFull: 'Replace' }
    await place.applyModel('many', onDevice(3, 'a', replace))
    await untilOf('many', 'a', 3)
    let fewest = 3
    const watching = new AbortController()
    const watched = (async () => {
      while (!watching.signal.aborted) {
        const alive = (await podsOf('many')).filter(({ metadata, status }) => {
          const ready = status.conditions?.find(({ type }: PlainObject) => type === 'Ready')
          return ready?.status === 'True' && metadata.deletionTimestamp === undefined
        })
        fewest = Math.min(fewest, alive.length)
      }
    })()
    await place.applyModel('many', onDevice(3, 'b', replace))
    await untilOf('many', 'b', 3)
    watching.abort()
    await watched
    t.ok(fewest >= 2, `${fewest} of 3 were left`)
    t.comment('back, before it is through: it goes on from there')
    await place.applyModel('many', onDevice(3, 'c', replace))
    await plain.until(
      place.path('deployments', 'many-step'),
      (found) => found?.['spec'].strategy.rollingUpdate.maxSurge === 0,
    )
    await place.applyModel('many', onDevice(3, 'b', replace))
    await untilOf('many', 'b', 3)
    await place.ready('models', 'many')
  })
})
