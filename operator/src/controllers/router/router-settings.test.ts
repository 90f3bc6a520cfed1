// needs: apiserver
import { RouterSpec } from '@tutti/ensemble'
import { type ApiServer, type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { buildRouterSet } from '../../resources/build-router-set.ts'
import {
  type EnsembleNamespace,
  openEnsembleRig,
  routerDefaults,
} from '../../testing/ensemble-rig.ts'
import { isGone, isThere, pathsIn } from '../../testing/namespaced.ts'
import { installCrds } from '../../testing/prepare-server.ts'
import { ENSEMBLE, saidOf, textOf, untilAll, withReplicas } from '../../testing/router-objects.ts'
import { toSpec } from './earlier-settings.ts'

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  const { plain } = server

  const createSettings = (ns: EnsembleNamespace, name: string, data: object) =>
    plain.create(ns.path('configmaps'), {
      metadata: { name, labels: { 'tutti.dev/router-settings': 'true' } },
      data,
    })

  await t.test('the API server refuses a Router that is wrong, and says why', async (t) => {
    const { metadata } = await plain.create('/api/v1/namespaces', {
      metadata: { generateName: 'refused-' },
    })
    const path = pathsIn(metadata['name'])('routers')
    const cases: readonly (readonly [PlainObject, RegExp])[] = [
      [{ metadata: { name: 'other' }, spec: {} }, /got other, want default: a namespace has one/],
      [{ spec: { replicas: 0 } }, /spec\.replicas.* greater than or equal to 1/],
      [{ spec: { timeouts: { drain: '48h' } } }, /spec\.timeouts\.drain.*got 48h, want 1s to 24h/],
      [{ spec: { clientNamespaces: ['*', 'a'] } }, /spec\.clientNamespaces.*want \* alone/],
      [{ spec: { image: 'a b' } }, /spec\.image/],
      [{ spec: { resources: { limits: { cpu: 'much' } } } }, /spec\.resources\.limits\.cpu/],
      [{ spec: { replicass: 1 } }, /unknown field "spec\.replicass"/],
      [{}, /spec: Required value/],
    ]
    for (const [given, wanted] of cases) {
      const body = {
        apiVersion: 'tutti.dev/v1alpha1',
        kind: 'Router',
        metadata: { name: 'default' },
        ...given,
      }
      const answer = await plain.send('POST', `${path}?fieldValidation=Strict`, { body })
      t.match([400, 422].includes(answer.status), true, textOf(given))
      t.match(answer.body['message'], wanted)
    }
  })

  await t.test('an image of its own is refused unless the operator allows it', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyEnsemble('one', ENSEMBLE)
    const path = ns.path('deployments', 'tutti-router')
    const before = await plain.until(path, isThere)
    await plain.patch(ns.path('routers', 'default'), { spec: { image: 'mine:1', replicas: 5 } })
    const { conditions } = await ns.condition(
      'one',
      'RouterReady',
      'False',
      'RouterSettingsInvalid',
    )
    t.match(saidOf({ conditions }, 'RouterReady'), /^spec\.image: got 'mine:1', want none/)
    t.same((await plain.get(path))['spec'], before?.['spec'])
    t.match(
      rig.events.filter(
        ({ reason, regarding }) =>
          reason === 'RouterSettingsInvalid' && regarding.kind === 'Router',
      ),
      [{ type: 'Warning', note: /spec\.image/ }],
    )
    await plain.patch(ns.path('routers', 'default'), { spec: { image: null, replicas: 1 } })
    await plain.until(path, withReplicas(1))
    await plain.until(ns.path('poddisruptionbudgets', 'tutti-router'), isGone)
    await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
  })

  await t.test(
    'a namespace of the earlier release keeps its settings, objects and pods',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      const ns = await rig.createNamespace()
      const data = {
        replicas: '3',
        resources: '{"limits":{"memory":"4Gi"}}',
        nodeSelector: '{"disk":"fast"}',
        drainTimeout: '1m30s',
        maxInFlightRequests: '7',
        clientNamespaces: 'apps,web',
      }
      await createSettings(ns, 'router', data)
      const spec = RouterSpec.parse(toSpec(data))
      // As that release made them: the same objects, without an owner.
      const parts = { namespace: ns.name, defaults: routerDefaults(), spec }
      for (const { resource, object } of buildRouterSet(parts, [])) {
        await plain.create(ns.path(resource.plural), JSON.parse(textOf(object)))
      }
      const path = ns.path('deployments', 'tutti-router')
      const before = await plain.get(path)
      await ns.applyEnsemble('one', ENSEMBLE)
      await rig.start()
      await untilAll(
        plain,
        ns,
        (object) => object?.['metadata'].ownerReferences?.[0].kind === 'Router',
      )
      const router = await plain.get(ns.path('routers', 'default'))
      t.same(router['spec'], spec)
      t.same(router['metadata'].annotations, undefined)
      const after = await plain.get(path)
      t.equal(after['metadata'].uid, before['metadata'].uid)
      t.same(after['spec'], before['spec'], 'no pod is replaced')
      t.match(
        rig.events.filter(({ reason }) => reason === 'SettingsTakenOver'),
        [{ type: 'Normal', note: /ConfigMap "router"/ }],
      )
      // From then on the ConfigMap has no effect.
      await plain.patch(ns.path('configmaps', 'router'), { data: { replicas: '9' } })
      await plain.patch(ns.path('routers', 'default'), { spec: { replicas: 2 } })
      await plain.until(path, withReplicas(2))
    },
  )

  await t.test(
    'settings of the earlier release that cannot be read leave everything as it is',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await createSettings(ns, 'router', { replicas: 'many' })
      await ns.applyEnsemble('one', ENSEMBLE)
      const { conditions } = await ns.condition(
        'one',
        'RouterReady',
        'False',
        'RouterSettingsInvalid',
      )
      t.match(
        saidOf({ conditions }, 'RouterReady'),
        /^ConfigMap "router", as the spec of this Router: replicas: /,
      )
      t.same((await plain.send('GET', ns.path('deployments', 'tutti-router'))).status, 404)
      await createSettings(ns, 'second', { replicas: '1' })
      await plain.until(ns.path('routers', 'default'), (now) =>
        textOf(now).includes('both have the label'),
      )
      await plain.delete(ns.path('configmaps', 'router'))
      await plain.until(ns.path('deployments', 'tutti-router'), withReplicas(1))
      await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
      t.same((await plain.get(ns.path('routers', 'default')))['spec'], { replicas: 1 })
    },
  )
})
