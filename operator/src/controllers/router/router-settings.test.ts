// needs: apiserver
import type { RouterSpec } from '@tutti/api'
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

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  const { plain } = server

  /** The objects as a Router that was deleted without them leaves them: without an owner. */
  const createOrphans = async (ns: EnsembleNamespace, spec: RouterSpec) => {
    const facts = { namespace: ns.name, defaults: routerDefaults(), spec }
    for (const { resource, object } of buildRouterSet(facts, { ensembles: [] })) {
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
      [{ spec: { scaling: { replicas: 0 } } }, /spec\.scaling\.replicas.* got 0, want at least 1/],
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
    await plain.patch(ns.path('routers', 'default'), {
      spec: { image: 'mine:1', scaling: { replicas: 5 } },
    })
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
    await plain.patch(ns.path('routers', 'default'), {
      spec: { image: null, scaling: { replicas: 1 } },
    })
    await plain.until(path, withReplicas(1))
    await plain.until(ns.path('poddisruptionbudgets', 'tutti-router'), isGone)
    await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
  })

  await t.test(
    'an HPA gets the replicas of a Router with bounds, and gives them back',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await ns.applyEnsemble('one', ENSEMBLE)
      const [path, router] = [ns.path('deployments', 'tutti-router'), ns.path('routers', 'default')]
      const hpa = ns.path('horizontalpodautoscalers', 'tutti-router')
      const rescale = (replicas: number) => plain.patch(`${path}/scale`, { spec: { replicas } })
      const limit = (cpu: string) =>
        plain.patch(router, { spec: { resources: { limits: { cpu } } } })
      await plain.until(path, withReplicas(2))
      await plain.patch(router, { spec: { scaling: { maxReplicas: 8 } } })
      const made = await plain.until(hpa, isThere)
      t.match(made, {
        metadata: { ownerReferences: [{ kind: 'Router', name: 'default' }] },
        spec: {
          scaleTargetRef: { kind: 'Deployment', name: 'tutti-router' },
          minReplicas: 2,
          maxReplicas: 8,
          metrics: [{ containerResource: { container: 'main', target: { averageValue: '700m' } } }],
        },
      })
      await rescale(5)
      await limit('2')
      t.equal(
        (await plain.until(path, (now) => textOf(now).includes('"cpu":"2"')))?.['spec'].replicas,
        5,
      )
      await plain.until(router, ({ status } = {}) => status?.podsReady === '0/5')
      t.match((await plain.get(router))['status'], {
        selector: 'app.kubernetes.io/component=router,app.kubernetes.io/instance=tutti-router',
      })
      await plain.patch(router, { spec: { scaling: { maxReplicas: null, replicas: 3 } } })
      await plain.until(path, withReplicas(3))
      await plain.until(hpa, isGone)
      t.notOk(
        rig.events.some(({ reason }) => reason === 'ReplicasNotOwned'),
        'each is the only one that writes',
      )
    },
  )

  await t.test('what a Router that was deleted left and the next does not want goes', async (t) => {
    const rig = await openEnsembleRig(t, server)
    const ns = await rig.createNamespace()
    await createOrphans(ns, { scaling: { replicas: 2 } })
    await plain.get(ns.path('poddisruptionbudgets', 'tutti-router'))
    await plain.create(ns.path('routers'), {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Router',
      metadata: { name: 'default' },
      spec: { scaling: { replicas: 1 } },
    })
    await rig.start()
    await plain.until(ns.path('poddisruptionbudgets', 'tutti-router'), isGone)
    const { metadata } = await plain.get(ns.path('deployments', 'tutti-router'))
    t.match(metadata['ownerReferences'], [{ kind: 'Router', name: 'default' }])
  })

  await t.test('a Router that is made again takes over what the one before had', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyModel('m')
    await untilAll(plain, ns, isThere)
    const path = ns.path('routers', 'default')
    const { metadata: first } = await plain.get(path)
    await plain.delete(path)
    const isNext = (now?: PlainObject) => isThere(now) && now?.['metadata'].uid !== first.uid
    const next = await plain.until(path, isNext)
    await untilAll(
      plain,
      ns,
      (one) => one?.['metadata'].ownerReferences?.[0].uid === next?.['metadata'].uid,
    )
    t.same((await plain.get(path))['spec'], {})
    t.equal((await plain.get(ns.path('deployments', 'tutti-router')))['spec'].replicas, 2)
  })

  await t.test('a Router that holds settings outlives the last Model', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyModel('m')
    const path = ns.path('routers', 'default')
    await plain.until(path, isThere)
    await plain.patch(path, { spec: { scaling: { replicas: 3 } } })
    await plain.until(ns.path('deployments', 'tutti-router'), withReplicas(3))
    await plain.delete(ns.path('models', 'm'))
    await plain.patch(path, { spec: { scaling: { replicas: 4 } } })
    await plain.until(ns.path('deployments', 'tutti-router'), withReplicas(4))
  })
})
