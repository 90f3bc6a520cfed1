// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { isGone, isThere } from '../testing/namespaced.ts'
import { untilPodsOf } from '../testing/pods-of-model.ts'

const NEEDED = ['kube-controller-manager', 'kube-scheduler'] as const

const STEPS = [
  { name: 'one', modelRef: { name: 'one' }, inputMap: { image: 'image' } },
  { name: 'two', modelRef: { name: 'two' }, inputMap: { image: 'image' } },
]

/** Spec of an Ensemble whose steps run the Models `one` and `two`. */
const TOGETHER: PlainObject = {
  outputs: [
    { name: 'boxes', from: 'one.boxes' },
    { name: 'others', from: 'two.boxes' },
  ],
  steps: STEPS,
  placement: 'Together',
}

const setSpec = ({ plain, path }: CasePlace, plural: string, name: string, spec: PlainObject) =>
  plain.patch(path(plural, name), { spec })

const isOfPods = ({ path }: { readonly path: string }): boolean =>
  path.endsWith('/deployments/faces-steps')

const messageOf = (object: PlainObject, type: string): string =>
  object['status'].conditions.find((one: PlainObject) => one['type'] === type)?.message

await t.test(
  'Ensembles that take their Models together',
  { skip: withoutKube(...NEEDED) },
  async (t) => {
    const rig = await openCaseRig(t)
    const { plain } = rig.server

    await t.test('one pod has the Models of all steps, in whatever order they come', async (t) => {
      const place = await rig.openPlace()
      const operator = await place.startOperator(t)
      await place.applyModel('one')
      await place.ready('models', 'one')
      await place.applyEnsemble('faces', 'one', { ...TOGETHER, scaling: { minReplicas: 2 } })
      await place.applyModel('two')
      await place.ready('ensembles', 'faces')
      for (const model of ['one', 'two']) {
        await plain.until(place.path('deployments', `${model}-step`), isGone, 60_000)
        const ready = await place.ready('models', model)
        t.match(ready['status'], { podsReady: '2/2', selector: /tutti.dev\/ensemble=faces/ })
        await untilPodsOf(place, model, { label: 'ensemble', hosts: ['faces', 'faces'] })
      }
      await plain.until(place.path('poddisruptionbudgets', 'faces-steps'), isThere)
      await operator.atRest()
      const before = operator.proxy.writes.length
      await setSpec(place, 'ensembles', 'faces', { placement: null, scaling: null })
      await plain.until(place.path('deployments', 'faces-steps'), isGone, 60_000)
      for (const model of ['one', 'two']) await place.ready('models', model)
      await place.ready('ensembles', 'faces')
      const writes = operator.proxy.writes.slice(before).filter(isOfPods)
      t.same(
        [...new Set(writes.map(({ method }) => method))],
        ['DELETE'],
        'pods that Models leave stay as they were',
      )
      await untilPodsOf(place, 'one', { label: 'model', hosts: ['one'] })
      await operator.atRest()
    })

    await t.test('a Model with pods of its own keeps them, and both say why', async (t) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      await place.applyModel('one', { placement: 'Alone' })
      await place.applyModel('two')
      await place.applyEnsemble('faces', 'one', TOGETHER)
      const alone = await place.condition('models', 'one', 'Accepted=True/AcceptedWithWarnings')
      t.match(messageOf(alone, 'Accepted'), /Ensemble "faces" .*its placement is Alone/)
      const told = await place.condition('ensembles', 'faces', 'Accepted=True/AcceptedWithWarnings')
      t.match(messageOf(told, 'Accepted'), /Model "one": .*its placement is Alone/)
      await place.ready('ensembles', 'faces')
      await untilPodsOf(place, 'one', { label: 'model', hosts: ['one'] })
      await setSpec(place, 'models', 'one', { placement: null, scaling: { maxReplicas: 3 } })
      const scaled = await place.condition('models', 'one', 'Accepted=True/AcceptedWithWarnings')
      t.match(messageOf(scaled, 'Accepted'), /it has scaling of its own/)
      await setSpec(place, 'models', 'one', { scaling: { maxReplicas: null } })
      await place.condition('models', 'one', 'Accepted=True/Accepted')
      await plain.until(place.path('deployments', 'one-step'), isGone, 60_000)
      await place.applyEnsemble('others', 'one', TOGETHER)
      const shared = await place.condition('models', 'one', 'Accepted=True/AcceptedWithWarnings')
      t.match(messageOf(shared, 'Accepted'), /Ensemble "others" asks for it too/)
      await place.ready('models', 'one')
      await place.ready('models', 'two')
      await plain.until(place.path('deployments', 'faces-steps'), isGone, 60_000)
      await plain.delete(place.path('ensembles', 'others'))
      await place.condition('models', 'two', 'Accepted=True/Accepted')
      await place.ready('ensembles', 'faces')
    })

    await t.test('fields about pods want the placement, and devices are taken over', async (t) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      await t.rejects(
        place.applyEnsemble('faces', 'one', { scaling: { maxReplicas: 2 } }),
        /want placement: Together/,
      )
      await place.applyModel('one', { accelerator: { resourceName: 'example.com/gpu' } })
      await place.applyModel('two')
      await place.applyEnsemble('faces', 'one', TOGETHER)
      const made = await plain.until(place.path('deployments', 'faces-steps'), isThere)
      const [main] = made?.['spec'].template.spec.containers ?? []
      t.match(main?.resources, { requests: { cpu: '200m' }, limits: { 'example.com/gpu': '1' } })
      await setSpec(place, 'ensembles', 'faces', {
        accelerator: { resourceName: 'example.com/npu' },
      })
      const apart = await place.condition('models', 'one', 'Accepted=True/AcceptedWithWarnings')
      t.match(messageOf(apart, 'Accepted'), /its accelerator is another one/)
      const podTemplate = { spec: { volumes: [{ name: 'host', hostPath: { path: '/' } }] } }
      await setSpec(place, 'ensembles', 'faces', { podTemplate })
      const held = await place.condition('models', 'two', 'Progressing=False/HostAccessNotAllowed')
      t.match(
        messageOf(held, 'Progressing'),
        /Ensemble "faces", in whose pods it runs: podTemplate/,
      )
      const kept = await plain.get(place.path('deployments', 'faces-steps'))
      t.notMatch(JSON.stringify(kept['spec'].template), 'hostPath')
    })

    await t.test('the pods sleep together, and wake for a request to one of them', async (t) => {
      const place = await rig.openPlace()
      await place.startOperator(t, { scalingMs: 200 })
      await place.applyModel('one')
      await place.applyModel('two')
      await place.applyEnsemble('faces', 'one', {
        ...TOGETHER,
        scaling: { minReplicas: 0, idleAfter: '1s' },
      })
      await place.ready('ensembles', 'faces')
      const asleep = async (): Promise<void> => {
        for (const model of ['one', 'two']) {
          await place.condition('models', model, 'Ready=True/Asleep')
          await untilPodsOf(place, model, { label: 'ensemble', hosts: [] })
        }
      }
      await asleep()
      await place.ready('ensembles', 'faces')
      rig.player.want(place.namespace, 'two')
      for (const model of ['one', 'two']) await place.condition('models', model, 'Ready=True/Ready')
      await untilPodsOf(place, 'one', { label: 'ensemble', hosts: ['faces'] })
      rig.player.want(place.namespace)
      await asleep()
      await setSpec(place, 'models', 'one', { maxBatchSize: 2 })
      await place.condition('models', 'one', 'Ready=True/Ready')
    })
  },
)
