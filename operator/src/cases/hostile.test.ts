// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { openCaseRig } from '../testing/case-rig.ts'
import { isThere } from '../testing/namespaced.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

/** As the server takes it of a field that no schema describes. */
function nested(levels: number): PlainObject {
  return JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
}

await t.test('what users write who mean harm, or do not know better', { skip }, async (t) => {
  const rig = await openCaseRig(t)
  await sideBySide(t, {
    'a pod template of thousands of levels is refused, and harms nothing else': async (t: Test) => {
      const place = await rig.openPlace()
      await place.applyModel('deep', { podTemplate: { spec: nested(3500) } })
      await place.startOperator(t)
      await place.condition('models', 'deep', 'Accepted=False/InvalidSpec')
      await place.applyModel('yolo')
      await place.ready('models', 'yolo')
      await place.applyModel('deep')
      await place.ready('models', 'deep')
      // Its pods are those of the accepted generation, and serve.
      await place.applyModel('deep', { podTemplate: { spec: nested(3500) } })
      await place.condition('models', 'deep', 'Accepted=False/InvalidSpec')
      await place.condition('models', 'deep', 'Routable=True/Routed')
      await place.condition('models', 'deep', 'WorkloadAvailable=True/Available')
    },
    'annotations are taken up to what fits beside ours, and refused beyond it': async (t: Test) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      // 16 times 3 bytes of a key, and two bytes each of 130536 characters: 261120.
      const most = Object.fromEntries(
        Array.from({ length: 16 }, (_, at) => [
          `k${String(at).padStart(2, '0')}`,
          'é'.repeat(at < 15 ? 8192 : 7656),
        ]),
      )
      const more = { ...most, k15: `${most['k15']}a` }
      const applyModel = (annotations: PlainObject) =>
        place.applyModel('yolo', { podTemplate: { metadata: { annotations } } })
      const applyEnsemble = (annotations: PlainObject) =>
        place.applyEnsemble('ens', 'yolo', {
          expose: { ingress: { hosts: ['a.example'], annotations } },
        })
      const said = /annotations: Invalid value: .*: want at most 261120 bytes in keys and values/
      await t.rejects(applyModel(more), said)
      await t.rejects(applyEnsemble(more), said)
      await applyModel(most)
      await applyEnsemble(most)
      await place.ready('models', 'yolo')
      await place.ready('ensembles', 'ens')
      await place.condition('ensembles', 'ens', 'Degraded=False')
      for (const name of ['ens-grpc', 'ens-http']) {
        t.ok(await place.plain.get(place.path('ingresses', name)))
      }
    },
    'an object of another namespace that claims a Model as its owner is nothing of it': async (
      t: Test,
    ) => {
      const [place, other] = [await rig.openPlace(), await rig.openPlace()]
      const operator = await rig.startOperator(t, { system: place.system })
      await place.applyModel('yolo', { scaling: { provider: 'None' } })
      const { metadata } = await place.ready('models', 'yolo')
      const { name, uid } = metadata
      const before = await place.look()
      const labels = { 'app.kubernetes.io/managed-by': 'tutti-operator', a: 'b' }
      const template = {
        metadata: { labels },
        spec: { containers: [{ name: 'main', image: 'x' }] },
      }
      await place.plain.create(other.path('deployments'), {
        metadata: {
          name: 'a-step',
          labels,
          // The garbage collector takes it away otherwise.
          finalizers: ['example.com/stay'],
          ownerReferences: [
            { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', name, uid, controller: true },
          ],
        },
        spec: { replicas: 0, selector: { matchLabels: labels }, template },
      })
      // Somebody looks at the Model anew.
      await place.plain.delete(place.path('services', 'yolo-step'))
      await place.plain.until(place.path('services', 'yolo-step'), isThere)
      await operator.atRest()
      t.same(await place.look(), before)
      const writes = operator.proxy.writes.filter(({ path }) => path.includes('a-step'))
      t.same(writes, [], 'it is not touched')
      await place.plain.patch(other.path('deployments', 'a-step'), { metadata: { finalizers: [] } })
    },
  })
})
