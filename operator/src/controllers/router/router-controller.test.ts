// needs: apiserver
import { until } from '@tutti/chassis/testing'
import { type ApiServer, type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { ROUTER_LABELS } from '../../resources/router-names.ts'
import { type EnsembleNamespace, openEnsembleRig } from '../../testing/ensemble-rig.ts'
import { isGone, isThere } from '../../testing/namespaced.ts'
import { installCrds } from '../../testing/prepare-server.ts'
import {
  ENSEMBLE,
  MEMBERS,
  saidOf,
  textOf,
  untilAll,
  withReplicas,
} from '../../testing/router-objects.ts'

function isOwnedBy(object: PlainObject | undefined, ...uids: readonly string[]): boolean {
  const owners: readonly PlainObject[] = object?.['metadata'].ownerReferences ?? []
  return uids.every((uid, at) => owners[at]?.['uid'] === uid)
}

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  const { plain } = server

  // Kubernetes' own controllers do not run here, so a quota leaves what its status says.
  const applyQuota = async (ns: EnsembleNamespace, hard: object) => {
    await plain.apply(ns.path('resourcequotas', 'few'), {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'few' },
      spec: { hard },
    })
    const used = Object.fromEntries(Object.keys(hard).map((name) => [name, '0']))
    await plain.patch(`${ns.path('resourcequotas', 'few')}/status`, { status: { hard, used } })
  }

  await t.test(
    'a Router comes with the first Model or Ensemble, owns all of its set, and goes with the last',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await plain.create(ns.path('services'), {
        metadata: { name: 'theirs', labels: { 'app.kubernetes.io/component': 'router' } },
        spec: { ports: [{ port: 80 }] },
      })
      await ns.applyEnsemble('one', ENSEMBLE)
      await untilAll(plain, ns, isThere)
      const router = await plain.get(ns.path('routers', 'default'))
      t.match(router, {
        metadata: { labels: { 'app.kubernetes.io/managed-by': 'tutti-operator' } },
        spec: {},
      })
      const { uid } = router['metadata']
      await untilAll(plain, ns, (object) => isOwnedBy(object, uid))
      const { metadata: model } = await ns.applyModel('m')
      const credential = ns.path('secrets', 'tutti-nats')
      await plain.until(credential, (secret) => isOwnedBy(secret, uid, model['uid']))
      await plain.delete(ns.path('ensembles', 'one'))
      // Still used by the Model, so a member that somebody deletes comes back.
      await plain.delete(ns.path('services', 'tutti-router-http'))
      await plain.until(ns.path('services', 'tutti-router-http'), isThere)
      t.ok(await plain.get(ns.path('routers', 'default')))
      await plain.delete(ns.path('models', 'm'))
      // The garbage collector, which does not run here, takes what it owns.
      await plain.until(ns.path('routers', 'default'), isGone)
      t.ok(await plain.get(ns.path('services', 'theirs')))
    },
  )

  await t.test(
    'a Router that is deleted is made again while it is needed, and its set serves on',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const { metadata: model } = await ns.applyModel('m')
      await untilAll(plain, ns, isThere)
      const uidsOf = (): Promise<unknown> =>
        Promise.all(
          MEMBERS.map(async ([plural, name]) => {
            return (await plain.get(ns.path(plural, name)))['metadata'].uid
          }),
        )
      const before = await uidsOf()
      const path = ns.path('routers', 'default')
      const { metadata: first } = await plain.get(path)
      const credential = ns.path('secrets', 'tutti-nats')
      const owned = await plain.until(credential, (one) => isOwnedBy(one, first.uid, model['uid']))
      await plain.delete(path)
      const next = await plain.until(
        path,
        (now) => isThere(now) && now?.['metadata'].uid !== first.uid,
      )
      const { uid } = next?.['metadata'] ?? {}
      await untilAll(plain, ns, (object) => isOwnedBy(object, uid))
      t.same(await uidsOf(), before)
      t.same((await plain.get(credential))['data'], owned?.['data'], 'steps keep their credential')
    },
  )

  await t.test(
    'a Router that is deleted and held keeps its credential and says who holds it',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const { metadata: model } = await ns.applyModel('m')
      await ns.applyEnsemble('one', ENSEMBLE)
      await untilAll(plain, ns, isThere)
      await ns.startRouter('router-1')
      await ns.condition('one', 'RouterReady', 'True')
      const path = ns.path('routers', 'default')
      const { metadata: first } = await plain.get(path)
      await plain.patch(path, { metadata: { finalizers: ['example.com/stay'] } })
      await plain.delete(path)
      const held = await ns.condition('one', 'Degraded', 'True', 'Terminating')
      t.match(saidOf(held, 'Degraded'), /Router "default": is being deleted and held by "example/)
      await ns.condition('one', 'RouterReady', 'True')
      const credential = ns.path('secrets', 'tutti-nats')
      await plain.until(credential, (one) => isOwnedBy(one, model['uid']))
      await plain.delete(credential)
      await plain.until(credential, (one) => isOwnedBy(one, model['uid']))
      await plain.patch(path, { metadata: { finalizers: null } })
      const next = await plain.until(
        path,
        (one) => ![undefined, first.uid].includes(one?.['metadata'].uid),
      )
      await plain.until(credential, (one) => isOwnedBy(one, next?.['metadata'].uid, model['uid']))
      await ns.condition('one', 'Degraded', 'False')
    },
  )

  await t.test(
    "a user's Router is served without Models, and is neither written nor deleted",
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const path = ns.path('routers', 'default')
      const written = await plain.create(ns.path('routers'), {
        apiVersion: 'tutti.dev/v1alpha1',
        kind: 'Router',
        metadata: { name: 'default' },
        spec: { scaling: { replicas: 1 }, maxInFlightRequests: 7 },
      })
      const deployment = ns.path('deployments', 'tutti-router')
      const made = await plain.until(deployment, withReplicas(1))
      t.ok(made?.['spec'].template.spec.containers[0].args.includes('7'))
      await ns.applyEnsemble('one', ENSEMBLE)
      await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
      await plain.delete(ns.path('ensembles', 'one'))
      await plain.patch(path, { spec: { scaling: { replicas: 3 } } })
      await plain.until(deployment, withReplicas(3))
      const now = await plain.get(path)
      t.same(now['metadata'].labels, undefined)
      t.equal(now['metadata'].uid, written['metadata'].uid)
      t.same(now['spec'], { scaling: { replicas: 3 }, maxInFlightRequests: 7 })
    },
  )

  await t.test('the status says which pods there are, and what they serve', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyEnsemble('one', ENSEMBLE)
    const pod = await ns.startRouter('router-1')
    await plain.create(ns.path('pods'), {
      metadata: { name: 'router-2', labels: ROUTER_LABELS },
      spec: { containers: [{ name: 'main', image: 'tutti/router:test' }] },
    })
    pod.answer('/tutti/v1/served', { models: [], accepted: ['b', 'a'] })
    const path = ns.path('routers', 'default')
    const { status, metadata } =
      (await plain.until(path, (now) => textOf(now).includes('"served":["a","b"]'))) ?? {}
    t.match(status, {
      observedGeneration: metadata.generation,
      replicas: 2,
      readyReplicas: 1,
      pods: [
        { name: 'router-1', ready: true, revisions: 2, served: ['a', 'b'] },
        { name: 'router-2', ready: false },
      ],
    })
    t.match(
      status.conditions.map(
        (one: PlainObject) => `${one['type']}=${one['status']}/${one['reason']}`,
      ),
      [
        'Progressing=True/RollingOut',
        'Degraded=False/AsExpected',
        'BuiltinsReady=True/NotNeeded',
        'Ready=True/Ready',
      ],
    )
  })

  await t.test(
    "an object of somebody else in a router's place is left alone, and said",
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const path = ns.path('services', 'tutti-router-grpc')
      const theirs = { metadata: { name: 'tutti-router-grpc' }, spec: { ports: [{ port: 81 }] } }
      const { metadata } = await plain.create(ns.path('services'), theirs)
      await ns.applyEnsemble('one', ENSEMBLE)
      await ns.condition('one', 'RouterReady', 'False', 'RouterConflict')
      t.equal((await plain.get(path))['metadata'].resourceVersion, metadata['resourceVersion'])
      await plain.delete(path)
      await plain.until(path, (object) => object?.['spec'].ports.length === 2)
      await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
    },
  )

  await t.test(
    'a condition tells what a quota refuses, which holds up nothing else and heals',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const quota = (hard: object) => applyQuota(ns, hard)
      // The Router itself first: there is nothing yet to have a status.
      await quota({ 'count/routers.tutti.dev': '0' })
      await ns.applyModel('m')
      const isTold = ({ reason, regarding: { kind } }: (typeof rig.events)[number]) =>
        reason === 'RouterRefused' && kind === 'Model'
      await until('an event', async () => rig.events.some(isTold))
      t.match(rig.events.find(isTold), { type: 'Warning', note: /^Router "default": .*quota: few/ })
      await quota({ 'count/routers.tutti.dev': '1', services: '0', secrets: '0' })
      await ns.applyEnsemble('one', ENSEMBLE)
      await ns.condition('one', 'RouterReady', 'False', 'CredentialMissing')
      await quota({ services: '0', secrets: '2' })
      const { conditions } = await ns.condition('one', 'RouterReady', 'False', 'RouterRefused')
      const ready = conditions.find((one: PlainObject) => one['type'] === 'RouterReady')
      t.match(ready.message, /^Service "tutti-router-grpc": .*exceeded quota: few/)
      await plain.until(ns.path('deployments', 'tutti-router'), isThere)
      await quota({ services: '2', secrets: '2' })
      await untilAll(plain, ns, isThere)
      await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
    },
  )

  await t.test(
    'a condition tells why pods of a router do not run, also while earlier ones serve',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await ns.applyEnsemble('one', ENSEMBLE)
      await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
      const absent = { reason: 'ErrImageNeverPull', message: 'image "x" is not present' }
      const tell = async (waiting: object) => {
        const status = { name: 'main', image: 'x', imageID: '', ready: false, restartCount: 0 }
        await plain.patch(`${ns.path('pods', 'next')}/status`, {
          status: { phase: 'Pending', containerStatuses: [{ ...status, state: { waiting } }] },
        })
      }
      await plain.create(ns.path('pods'), {
        metadata: { name: 'next', labels: ROUTER_LABELS },
        spec: { containers: [{ name: 'main', image: 'x' }] },
      })
      await tell(absent)
      const none = await ns.condition('one', 'RouterReady', 'False', absent.reason)
      t.equal(
        saidOf(none, 'RouterReady'),
        'Deployment "tutti-router": pod "next", container "main": image "x" is not present',
      )
      await ns.condition('one', 'Degraded', 'True', absent.reason)
      await ns.startRouter('earlier')
      const counted = { status: { replicas: 2, readyReplicas: 1 } }
      await plain.patch(`${ns.path('deployments', 'tutti-router')}/status`, counted)
      const served = await ns.condition('one', 'RouterReady', 'True')
      t.match(saidOf(served, 'Degraded'), /not present; the routers that are ready still serve$/)
      await tell({ reason: 'ContainerCreating' })
      await ns.condition('one', 'Degraded', 'False')
    },
  )

  await t.test(
    'a condition names an object that is being deleted and its finalizers, and it is created again',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await ns.applyEnsemble('one', { ...ENSEMBLE, expose: { ingress: { hosts: ['d.example'] } } })
      await untilAll(plain, ns, isThere)
      for (const [plural, name, type] of [
        ['services', 'tutti-router-http', 'RouterReady'],
        ['ingresses', 'one-http', 'Progressing'],
      ] as const) {
        const isRoute = type === 'Progressing'
        const path = ns.path(plural, name)
        const { metadata } = await plain.until(path, isThere).then((found) => found ?? {})
        await plain.patch(path, { metadata: { finalizers: ['example.com/stay'] } })
        await plain.delete(path, { propagationPolicy: 'Foreground' })
        const held = await ns.condition('one', 'Degraded', 'True', 'Terminating')
        t.match(saidOf(held, 'Degraded'), /held by "example.com\/stay" in metadata.finalizers/)
        // No garbage collector runs here: it stays until the test removes the finalizer.
        await plain.patch(path, { metadata: { finalizers: ['foregroundDeletion'] } })
        const status = isRoute ? 'True' : 'False'
        await ns.condition('one', 'Degraded', 'False')
        const passing = await ns.condition('one', type, status, 'Terminating')
        t.match(saidOf(passing, type), /: is being deleted, and its dependents before it; /)
        await plain.patch(path, { metadata: { finalizers: null } })
        await plain.until(path, (now) => ![undefined, metadata.uid].includes(now?.['metadata'].uid))
      }
      await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
    },
  )

  await t.test('a second look writes nothing', async (t) => {
    const rig = await openEnsembleRig(t, server)
    const stop = await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyEnsemble('one', { ...ENSEMBLE, expose: { ingress: { hosts: ['b.example'] } } })
    await untilAll(plain, ns, isThere)
    await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
    await plain.until(ns.path('ingresses', 'one-http'), isThere)
    const versions = async (): Promise<unknown> =>
      await Promise.all(
        [...MEMBERS, ['ensembles', 'one'], ['ingresses', 'one-http']].map(
          async ([plural = '', name]) => {
            return (await plain.get(ns.path(plural, name)))['metadata'].resourceVersion
          },
        ),
      )
    const before = await versions()
    await stop()
    // A new process applies everything once, and finds it as it is.
    await rig.start()
    await ns.applyEnsemble('two', ENSEMBLE)
    await ns.condition('two', 'RouterReady', 'False', 'NoRouters')
    t.same(await versions(), before)
  })
})
