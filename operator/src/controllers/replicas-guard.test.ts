import { createManualClock } from '@tutti/chassis/testing'
import { DEPLOYMENT, type Deployment, HORIZONTAL_POD_AUTOSCALER, type Stored } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { kubeError, memoryClient } from '../testing/memory-client.ts'
import { modelDeployment } from '../testing/model-world.ts'
import { keepDeployment } from './kept-objects.ts'
import { ReplicasGuard } from './replicas-guard.ts'

const { signal } = new AbortController()
const MINUTE = 60_000

interface Written {
  readonly replicas: number
  /** Field managers that own the replicas. */
  readonly by: readonly string[]
  readonly owner?: string
}

/** A Deployment whose replicas these managers wrote last. */
function deployment({ replicas, by, owner }: Written): Stored<Deployment> {
  const made = modelDeployment({ replicas })
  const fieldsV1 = { 'f:spec': { 'f:replicas': {} } }
  const entry = { operation: 'Update' as const, apiVersion: 'apps/v1', fieldsV1 }
  const ownerReferences = owner === undefined ? [] : [reference(owner)]
  const managedFields = by.map((manager) => ({ ...entry, manager }))
  return { ...made, metadata: { ...made.metadata, uid: 'd', ownerReferences, managedFields } }
}

function reference(uid: string) {
  return { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', name: 'yolo', uid, controller: true }
}

function rig() {
  const client = memoryClient()
  const clock = createManualClock()
  const guard = new ReplicasGuard({ client, clock })
  const find = (o: Written & { readonly planned?: number | undefined; readonly key?: string }) => {
    const live = deployment(o)
    client.put(DEPLOYMENT, live)
    const { key = 'ns/yolo', planned } = { planned: 1, ...o }
    return guard.find({ key, deployment: keepDeployment(live), planned, signal })
  }
  const addAutoscaler = (target: string, owner?: string) =>
    client.put(HORIZONTAL_POD_AUTOSCALER, {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: {
        name: 'theirs',
        namespace: 'ns',
        ...(owner !== undefined && { ownerReferences: [reference(owner)] }),
      },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: target },
        maxReplicas: 9,
      },
    })
  const removeAutoscaler = () =>
    client.remove(HORIZONTAL_POD_AUTOSCALER, { namespace: 'ns', name: 'theirs' })
  return { client, clock, guard, find, addAutoscaler, removeAutoscaler }
}

await t.test('without somebody else nothing is asked, and the operator writes', async (t) => {
  const { client, guard, find } = rig()
  for (const by of [[], ['tutti-operator'], ['tutti-operator', 'tutti-operator-handover']]) {
    t.equal(await find({ replicas: 3, by }), undefined)
  }
  t.equal(await find({ replicas: 3, by: ['kubectl'], planned: undefined }), undefined)
  t.same(client.calls, [])
  t.notOk(guard.isLeft('ns/yolo'))
})

await t.test('an HPA at the Deployment gets its way until it is gone', async (t) => {
  const { guard, find, addAutoscaler, removeAutoscaler } = rig()
  const written = { replicas: 3, by: ['kube-controller-manager'], owner: 'm' }
  addAutoscaler('yolo-step')
  for (const planned of [1, 3, 1]) {
    t.match(await find({ ...written, planned }), {
      name: 'HorizontalPodAutoscaler "theirs"',
      againMs: MINUTE,
    })
    t.ok(guard.isLeft('ns/yolo'))
  }
  removeAutoscaler()
  t.equal(await find(written), undefined)
  t.notOk(guard.isLeft('ns/yolo'))
})

await t.test('the HPA of the Model itself, and one at something else, do not count', async (t) => {
  for (const [target, owner] of [
    ['yolo-step', 'm'],
    ['other-step', undefined],
  ] as const) {
    const { find, addAutoscaler } = rig()
    addAutoscaler(target, owner)
    const by = ['kube-controller-manager']
    t.equal(await find({ replicas: 3, by, owner: 'm' }), undefined)
  }
})

await t.test('who may not see HPAs goes by the managers alone', async (t) => {
  const { client, find } = rig()
  client.onCall = ({ verb }) => {
    if (verb === 'list') throw kubeError(403, 'Forbidden')
  }
  t.equal(await find({ replicas: 3, by: ['scaler'] }), undefined)
  t.match(await find({ replicas: 3, by: ['scaler'] }), { name: 'the field manager "scaler"' })
  client.onCall = ({ verb }) => {
    if (verb === 'list') throw kubeError(500, 'InternalError')
  }
  await t.rejects(find({ replicas: 3, by: ['scaler'] }), { message: 'InternalError' })
})

await t.test('a cache that is behind shows nobody', async (t) => {
  const { client, guard } = rig()
  client.put(DEPLOYMENT, deployment({ replicas: 1, by: ['tutti-operator'] }))
  const behind = keepDeployment(deployment({ replicas: 3, by: ['scaler'] }))
  const o = { key: 'ns/yolo', deployment: behind, planned: 1, signal }
  for (let look = 0; look < 2; look += 1) t.equal(await guard.find(o), undefined)
})

await t.test('from anybody else the operator takes them back ever less often', async (t) => {
  const { clock, guard, find } = rig()
  const takenAt: number[] = []
  // Somebody who writes every 15 s, for a day.
  for (let atS = 0; atS < 86_400; atS += 15) {
    if ((await find({ replicas: 3, by: ['scaler'] })) === undefined) takenAt.push(atS)
    clock.advance(15_000)
  }
  t.same(takenAt.slice(0, 5), [0, 30, 75, 165, 330])
  t.ok(takenAt.length < 40, `${takenAt.length} times in a day`)
  t.equal(await find({ replicas: 1, by: ['scaler'] }), undefined, 'the same number is no fight')
  clock.advance(3 * 3_600_000)
  t.equal(await find({ replicas: 3, by: ['scaler'] }), undefined, 'once it was quiet')
  t.match(await find({ replicas: 3, by: ['scaler'] }), { againMs: 20_000 }, 'it begins anew')
  t.equal(await find({ replicas: 3, by: ['another'] }), undefined, 'somebody else')
  guard.forget('ns/yolo')
  t.equal(await find({ replicas: 3, by: ['another'] }), undefined, 'another Model of that name')
})

await t.test('whoever writes, and however often, few writes answer', async () => {
  const gaps = fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 200, maxLength: 200 })
  await fc.assert(
    fc.asyncProperty(gaps, async (seconds) => {
      const { clock, find } = rig()
      let taken = 0
      for (const gap of seconds) {
        if ((await find({ replicas: 3, by: ['scaler'] })) === undefined) taken += 1
        clock.advance(gap * 1000)
      }
      // 200 writes within 7 hours at most: 9 by the doubling, and one an hour.
      return taken <= 16
    }),
    { numRuns: 50 },
  )
})
