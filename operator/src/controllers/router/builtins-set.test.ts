// needs: apiserver
import type { PlainObject } from '@tutti/kube/testing'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { type CasePlace, openCaseRig } from '../../testing/case-rig.ts'
import { hasCondition, isGone, isThere } from '../../testing/namespaced.ts'

/** The spec of an Ensemble whose only step is a built-in. */
const BUILTIN: PlainObject = {
  maxBatchSize: 0,
  inputs: [{ name: 'x', datatype: 'FP32', shape: [4] }],
  outputs: [{ name: 'y', from: 'a.output' }],
  steps: [{ name: 'a', builtin: { name: 'softmax' }, inputMap: { input: 'x' } }],
}
/** The plural of each object around built-ins. */
const KINDS = ['serviceaccounts', 'networkpolicies', 'deployments'] as const

const objectIn = ({ path }: CasePlace, plural: string): string => path(plural, 'tutti-builtins')

async function untilAll(place: CasePlace, fits: (object: PlainObject | undefined) => boolean) {
  for (const plural of KINDS) await place.plain.until(objectIn(place, plural), fits)
}

function stepOf(object: PlainObject | undefined): PlainObject {
  return object?.['status']?.steps?.[0] ?? {}
}

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const rig = await openCaseRig(t)

  await t.test(
    'pods with built-ins come with the first Ensemble that needs them, and go with the last',
    async (t) => {
      const place = await rig.openPlace()
      const { plain, path } = place
      await place.startOperator(t)
      await place.applyModel('m')
      await place.applyEnsemble('other', 'm')
      await place.ready('ensembles', 'other')
      await place.condition('routers', 'default', 'BuiltinsReady=True/NotNeeded')
      t.ok(isGone(await plain.get(objectIn(place, 'deployments')).catch(() => undefined)))
      await place.applyEnsemble('one', '', BUILTIN)
      const ready = await place.ready('ensembles', 'one')
      t.match(stepOf(ready), { name: 'a', ready: true, replicas: 1 })
      await untilAll(place, isThere)
      const { metadata: router } = await plain.get(path('routers', 'default'))
      for (const plural of KINDS) {
        const { metadata } = await plain.get(objectIn(place, plural))
        t.match(metadata['ownerReferences'], [{ kind: 'Router', uid: router['uid'] }], plural)
      }
      const told = await place.condition('routers', 'default', 'BuiltinsReady=True/Ready')
      t.match(told['status'].builtins, { podsReady: '1/1', replicas: 1, readyReplicas: 1 })

      // An edit that is not accepted leaves what is served, and its pods.
      await plain.patch(path('ensembles', 'one'), {
        spec: { steps: [{ name: 'a', modelRef: { name: 'absent' }, inputMap: { image: 'x' } }] },
      })
      await place.condition('ensembles', 'one', 'Accepted=False')
      await place.condition('routers', 'default', 'BuiltinsReady=True/Ready')
      await untilAll(place, isThere)

      await plain.delete(path('ensembles', 'one'))
      // Kubernetes would do that, once it knows the new kind, which takes half a minute.
      for (const { metadata } of await plain.list(path('controllerrevisions'))) {
        const { labels, name } = metadata
        if (labels['tutti.dev/ensemble'] !== 'one') continue
        await plain.delete(path('controllerrevisions', name))
      }
      await untilAll(place, isGone)
      const after = await place.condition('routers', 'default', 'BuiltinsReady=True/NotNeeded')
      t.notOk('builtins' in after['status'])
      await place.ready('ensembles', 'other')
    },
  )

  await t.test('an Ensemble says why its built-ins do not run', async (t) => {
    const place = await rig.openPlace()
    const { plain, path } = place
    await plain.create(path('routers'), {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Router',
      metadata: { name: 'default' },
      spec: { builtins: { scaling: { provider: 'None', replicas: 0 } } },
    })
    await place.startOperator(t)
    await place.applyEnsemble('one', '', BUILTIN)
    const none = await place.condition('ensembles', 'one', 'StepsReady=False/ScaledToZero')
    t.match(stepOf(none), { ready: false, replicas: 0, reason: 'ScaledToZero' })
    await place.condition('ensembles', 'one', 'Ready=False/ScaledToZero')

    // Kubernetes refuses the pods, and says so at their Deployment.
    const quota = { 'count/pods': '0' }
    await plain.apply(path('resourcequotas', 'none'), {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none' },
      spec: { hard: quota },
    })
    await plain.until(path('resourcequotas', 'none'), (one) => one?.['status']?.hard !== undefined)
    await plain.patch(path('routers', 'default'), {
      spec: { builtins: { scaling: { provider: 'Native', replicas: 1, minReplicas: 2 } } },
    })
    const refused = await place.condition('routers', 'default', 'BuiltinsReady=False/FailedCreate')
    const { message = '' } =
      refused['status'].conditions.find((one: PlainObject) => one['type'] === 'BuiltinsReady') ?? {}
    t.match(message, /^Deployment "tutti-builtins": .*exceeded quota/)
    const waiting = await place.condition('ensembles', 'one', 'Ready=False/FailedCreate')
    t.match(stepOf(waiting), { ready: false, reason: 'FailedCreate', message })
    await plain.until(path('poddisruptionbudgets', 'tutti-builtins'), isThere)

    await plain.delete(path('resourcequotas', 'none'))
    await place.ready('ensembles', 'one')
    await plain.until(
      path('routers', 'default'),
      (router) =>
        hasCondition(router, 'BuiltinsReady=True/Ready') &&
        router?.['status'].builtins.podsReady === '2/2',
    )
  })

  await t.test('an object of somebody else under the name is left alone', async (t) => {
    const place = await rig.openPlace()
    const { plain } = place
    await plain.create(place.path('serviceaccounts'), { metadata: { name: 'tutti-builtins' } })
    await place.startOperator(t)
    await place.applyModel('m')
    await place.applyEnsemble('other', 'm')
    await place.applyEnsemble('one', '', BUILTIN)
    const held = await place.condition('ensembles', 'one', 'Ready=False/BuiltinsConflict')
    t.match(stepOf(held)['message'], 'tutti-builtins')
    t.notOk((await plain.get(objectIn(place, 'serviceaccounts')))['metadata'].ownerReferences)
    await place.ready('ensembles', 'other')
    await place.condition('routers', 'default', 'Degraded=True/BuiltinsDegraded')
    await plain.delete(objectIn(place, 'serviceaccounts'))
    await place.ready('ensembles', 'one')
  })
})
