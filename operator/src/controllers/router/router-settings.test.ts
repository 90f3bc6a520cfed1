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

  /** The objects as that release made them: the same, without an owner. */
  const createEarlierSet = async (ns: EnsembleNamespace, spec: RouterSpec) => {
    const parts = { namespace: ns.name, defaults: routerDefaults(), spec }
    for (const { resource, object } of buildRouterSet(parts, { ensembles: [] })) {
      await plain.create(ns.path(resource.plural), JSON.parse(textOf(object)))
    }
  }

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
    t.match(
      saidOf({ conditions }, 'RouterReady'),
      /^spec\.image: got 'mine:1', want none; remove spec\.image, or set router\.allowImage/,
    )
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

  await t.test('what the earlier release made and the Router does not want goes', async (t) => {
    const rig = await openEnsembleRig(t, server)
    const ns = await rig.createNamespace()
    await createEarlierSet(ns, { replicas: 2 })
    await plain.get(ns.path('poddisruptionbudgets', 'tutti-router'))
    await plain.create(ns.path('routers'), {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Router',
      metadata: { name: 'default' },
      spec: { replicas: 1 },
    })
    await rig.start()
    await plain.until(ns.path('poddisruptionbudgets', 'tutti-router'), isGone)
    const { metadata } = await plain.get(ns.path('deployments', 'tutti-router'))
    t.match(metadata['ownerReferences'], [{ kind: 'Router', name: 'default' }])
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
      await createEarlierSet(ns, spec)
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
      t.match(router['metadata'], { annotations: undefined, labels: undefined })
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
      // The settings are a user's: they outlive the last Ensemble.
      await plain.delete(ns.path('ensembles', 'one'))
      await plain.patch(ns.path('routers', 'default'), { spec: { replicas: 5 } })
      await plain.until(path, withReplicas(5))
    },
  )

  await t.test(
    'settings of the earlier release that cannot be read leave everything as it is',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await createSettings(ns, 'router', { replicas: 'many' })
      await createEarlierSet(ns, { replicas: 4 })
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
      const left = await plain.get(ns.path('deployments', 'tutti-router'))
      t.match(left, { metadata: { ownerReferences: undefined }, spec: { replicas: 4 } })
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

  await t.test(
    'a ConfigMap has no effect on a Router of a namespace without the earlier release',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await createSettings(ns, 'router', { clientNamespaces: '*', replicas: '7' })
      await ns.applyModel('m')
      await untilAll(plain, ns, isThere)
      const path = ns.path('routers', 'default')
      const { metadata: first } = await plain.get(path)
      // Made again, while the Deployment of the one before is still there.
      await plain.delete(path)
      const isNext = (now?: PlainObject) => isThere(now) && now?.['metadata'].uid !== first.uid
      const next = await plain.until(path, isNext)
      await untilAll(
        plain,
        ns,
        (one) => one?.['metadata'].ownerReferences?.[0].uid === next?.['metadata'].uid,
      )
      t.match(await plain.get(path), { metadata: { annotations: undefined }, spec: {} })
      t.same((await plain.get(path))['spec'], {})
      t.equal((await plain.get(ns.path('deployments', 'tutti-router')))['spec'].replicas, 2)
    },
  )

  await t.test(
    'a Router that a user wrote keeps its spec whatever annotation it has',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await createSettings(ns, 'router', { clientNamespaces: '*' })
      const typeMeta = { apiVersion: 'tutti.dev/v1alpha1', kind: 'Router' }
      const annotations = { 'tutti.dev/settings-from': 'router' }
      const labels = { 'app.kubernetes.io/managed-by': 'tutti-operator' }
      const path = ns.path('routers', 'default')
      const written = { ...typeMeta, metadata: { name: 'default', annotations }, spec: {} }
      await plain.create(ns.path('routers'), written)
      await ns.applyModel('m')
      for (const [metadata, spec] of [
        [{ annotations }, {}],
        [{ annotations, labels }, { replicas: 3 }],
      ] as const) {
        await plain.patch(path, { metadata, spec })
        const now = await plain.until(
          path,
          (one) => isThere(one) && one?.['metadata'].annotations === undefined,
        )
        t.same(now?.['spec'], spec)
      }
      t.same(
        rig.events.filter(({ reason }) => reason === 'SettingsTakenOver'),
        [],
      )
      // It holds settings: the last Model takes only one that holds none.
      await plain.delete(ns.path('models', 'm'))
      await plain.patch(path, { spec: { replicas: 4 } })
      await plain.until(ns.path('deployments', 'tutti-router'), withReplicas(4))
    },
  )
})
