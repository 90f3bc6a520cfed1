// needs: apiserver
import { type ApiServer, type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { BUILTINS_LABELS } from '../../resources/step-labels.ts'
import { openEnsembleRig } from '../../testing/ensemble-rig.ts'
import { hasCondition, isGone, isThere } from '../../testing/namespaced.ts'
import { installCrds } from '../../testing/prepare-server.ts'
import { ENSEMBLE, withReplicas } from '../../testing/router-objects.ts'

/** As ENSEMBLE, with a built-in in place of the Model. */
const BUILTIN: PlainObject = {
  ...ENSEMBLE,
  outputs: [{ name: 'Y', from: 'a.output' }],
  steps: [{ name: 'a', builtin: { name: 'softmax' }, inputMap: { input: 'X' } }],
}
/** The configuration of the Model of ENSEMBLE. */
const CONFIG = `
input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }
`

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  const { plain } = server

  await t.test(
    'pods with built-ins stay until no router executes a graph that needs them',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const deployment = ns.path('deployments', 'tutti-builtins')
      await ns.serveModel('m', CONFIG)
      await ns.applyEnsemble('one', BUILTIN)
      const router = await ns.startRouter('router-1')
      const { revision: first } = await ns.condition('one', 'Accepted', 'True')
      router.answer('/tutti/v1/served', { models: [], accepted: [first] })
      await plain.until(deployment, isThere)
      await plain.until(
        ns.path('routers', 'default'),
        (one) => one?.['status']?.pods?.[0]?.served?.[0] === first,
      )

      await ns.applyEnsemble('one', ENSEMBLE)
      const isOther = (one: PlainObject | undefined): boolean =>
        ![undefined, first].includes(one?.['status']?.revision)
      const accepted = await plain.until(ns.path('ensembles', 'one'), isOther)
      const second: unknown = accepted?.['status'].revision
      // A whole pass after that.
      await plain.patch(ns.path('routers', 'default'), { spec: { scaling: { replicas: 3 } } })
      await plain.until(ns.path('deployments', 'tutti-router'), withReplicas(3))
      t.ok(isThere(await plain.get(deployment)), 'the router executes the earlier generation')

      router.answer('/tutti/v1/served', { models: [], accepted: [second] })
      await plain.until(deployment, isGone)
      await plain.until(ns.path('routers', 'default'), (one) =>
        hasCondition(one, 'BuiltinsReady=True/NotNeeded'),
      )
    },
  )

  await t.test('their replicas follow the load that they tell', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    const deployment = ns.path('deployments', 'tutti-builtins')
    await plain.create(ns.path('routers'), {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Router',
      metadata: { name: 'default' },
      spec: { builtins: { scaling: { maxReplicas: 3, target: 1 } } },
    })
    await ns.applyEnsemble('one', BUILTIN)
    await plain.until(deployment, withReplicas(1))
    const pod = await ns.startPod('builtins-1', BUILTINS_LABELS)
    const load = { name: '/builtins', inFlight: 1, queued: 1, slots: 1 }
    pod.answer('/tutti/v1/load', { models: [load] })
    await plain.until(deployment, withReplicas(2))
    pod.answer('/tutti/v1/load', { models: [{ ...load, queued: 9 }] })
    await plain.until(deployment, withReplicas(3))
    // A decision does not outlive what wanted it.
    await plain.patch(ns.path('routers', 'default'), {
      spec: { builtins: { scaling: { provider: 'None', maxReplicas: null, target: null } } },
    })
    const last = await plain.until(deployment, withReplicas(1))
    t.ok(isThere(last))
  })
})
