// needs: apiserver
import { RouterSpec } from '@tutti/ensemble'
import { type ApiServer, type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { buildRouterSet } from '../../resources/build-router-set.ts'
import { ROUTER_LABELS } from '../../resources/router-names.ts'
import {
  type EnsembleNamespace,
  openEnsembleRig,
  routerDefaults,
} from '../../testing/ensemble-rig.ts'
import { isGone, isThere, pathsIn } from '../../testing/namespaced.ts'
import { installCrds, installGatewayApi } from '../../testing/prepare-server.ts'
import { toSpec } from './earlier-settings.ts'

const ENSEMBLE = {
  inputs: [{ name: 'X', datatype: 'FP32', shape: [4] }],
  outputs: [{ name: 'Y', from: 'a.Y' }],
  steps: [{ name: 'a', modelRef: { name: 'm' }, inputMap: { X: 'X' } }],
}

/** Everything that a router is made of, beside the credential. */
const MEMBERS: readonly (readonly [string, string])[] = [
  ['serviceaccounts', 'tutti-router'],
  ['roles', 'tutti-router'],
  ['rolebindings', 'tutti-router'],
  ['secrets', 'tutti-router-edge'],
  ['secrets', 'tutti-nats'],
  ['networkpolicies', 'tutti-router'],
  ['services', 'tutti-router-grpc'],
  ['services', 'tutti-router-http'],
  ['poddisruptionbudgets', 'tutti-router'],
  ['deployments', 'tutti-router'],
]

function withReplicas(replicas: number) {
  return (object: PlainObject | undefined): boolean => object?.['spec'].replicas === replicas
}

function edgeOf(secret: PlainObject | undefined): unknown {
  const text = Buffer.from(secret?.['data']?.['edge.json'] ?? '', 'base64').toString()
  return text === '' ? undefined : JSON.parse(text)
}

function saidOf(status: PlainObject, type: string): string {
  return status['conditions'].find((one: PlainObject) => one['type'] === type)?.message ?? ''
}

function isOwnedBy(object: PlainObject | undefined, ...uids: readonly string[]): boolean {
  const owners: readonly PlainObject[] = object?.['metadata'].ownerReferences ?? []
  return uids.every((uid, at) => owners[at]?.['uid'] === uid)
}

/** What settings of the earlier release are as a spec. */
function toSettled(data: Readonly<Record<string, string>>): { readonly spec: RouterSpec } {
  return { spec: RouterSpec.parse(toSpec(data)) }
}

const textOf = (value: unknown): string => JSON.stringify(value) ?? ''

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
  const untilAll = async (
    ns: EnsembleNamespace,
    fits: (object: PlainObject | undefined) => boolean,
  ) => {
    for (const [plural, name] of MEMBERS) await plain.until(ns.path(plural, name), fits)
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
      await untilAll(ns, isThere)
      const router = await plain.get(ns.path('routers', 'default'))
      t.match(router, {
        metadata: { labels: { 'app.kubernetes.io/managed-by': 'tutti-operator' } },
        spec: {},
      })
      const { uid } = router['metadata']
      await untilAll(ns, (object) => isOwnedBy(object, uid))
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
      await untilAll(ns, isThere)
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
      await untilAll(ns, (object) => isOwnedBy(object, uid))
      t.same(await uidsOf(), before)
      t.same((await plain.get(credential))['data'], owned?.['data'], 'steps keep their credential')
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
        spec: { replicas: 1, maxInFlightRequests: 7 },
      })
      const deployment = ns.path('deployments', 'tutti-router')
      const made = await plain.until(deployment, withReplicas(1))
      t.ok(made?.['spec'].template.spec.containers[0].args.includes('7'))
      await ns.applyEnsemble('one', ENSEMBLE)
      await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
      await plain.delete(ns.path('ensembles', 'one'))
      await plain.patch(path, { spec: { replicas: 3 } })
      await plain.until(deployment, withReplicas(3))
      const now = await plain.get(path)
      t.same(now['metadata'].labels, undefined)
      t.equal(now['metadata'].uid, written['metadata'].uid)
      t.same(now['spec'], { replicas: 3, maxInFlightRequests: 7 })
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
      ['Progressing=True/RollingOut', 'Degraded=False/AsExpected', 'Ready=True/Ready'],
    )
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
      const { spec } = toSettled(data)
      // As that release made them: the same objects, without an owner.
      const parts = { namespace: ns.name, defaults: routerDefaults(), spec }
      for (const { resource, object } of buildRouterSet(parts, [])) {
        await plain.create(ns.path(resource.plural), JSON.parse(textOf(object)))
      }
      const path = ns.path('deployments', 'tutti-router')
      const before = await plain.get(path)
      await ns.applyEnsemble('one', ENSEMBLE)
      await rig.start()
      await untilAll(ns, (object) => object?.['metadata'].ownerReferences?.[0].kind === 'Router')
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

  await t.test('what a quota refuses is said, holds up nothing else, and heals', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    // Without Kubernetes' own controllers nobody counts: what a quota leaves is what its status says.
    const quota = async (hard: object) => {
      await plain.apply(ns.path('resourcequotas', 'few'), {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'few' },
        spec: { hard },
      })
      const used = Object.fromEntries(Object.keys(hard).map((name) => [name, '0']))
      await plain.patch(`${ns.path('resourcequotas', 'few')}/status`, { status: { hard, used } })
    }
    await quota({ services: '0', secrets: '0' })
    await ns.applyEnsemble('one', ENSEMBLE)
    await ns.condition('one', 'RouterReady', 'False', 'CredentialMissing')
    await quota({ services: '0', secrets: '2' })
    const { conditions } = await ns.condition('one', 'RouterReady', 'False', 'RouterRefused')
    const ready = conditions.find((one: PlainObject) => one['type'] === 'RouterReady')
    t.match(ready.message, /^Service "tutti-router-grpc": .*exceeded quota: few/)
    await plain.until(ns.path('deployments', 'tutti-router'), isThere)
    await quota({ services: '2', secrets: '2' })
    await untilAll(ns, isThere)
    await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
  })

  await t.test(
    'what keeps pods of a router from running is said, also while earlier ones serve',
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
      t.match(saidOf(served, 'Degraded'), /not present; the routers that are ready go on$/)
      await tell({ reason: 'ContainerCreating' })
      await ns.condition('one', 'Degraded', 'False')
    },
  )

  await t.test(
    'what is exposed is what was asked for, and nothing while its token is missing',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const edge = ns.path('secrets', 'tutti-router-edge')
      const ingress = { hosts: ['a.example'], tls: [{ hosts: ['a.example'], secretName: 'cert' }] }
      await ns.applyEnsemble('one', { ...ENSEMBLE, expose: { ingress } })
      await ns.applyEnsemble('two', {
        ...ENSEMBLE,
        expose: { ingress, auth: { secretRef: { name: 'token' } } },
      })
      await plain.until(edge, (secret) => textOf(edgeOf(secret)).includes('one'))
      await ns.condition('two', 'Degraded', 'True', 'TokenMissing')
      t.same(edgeOf(await plain.get(edge)), { routes: [{ hosts: ['a.example'], models: ['one'] }] })
      await plain.create(ns.path('secrets'), {
        metadata: { name: 'token' },
        stringData: { token: 'secret\n' },
      })
      const found = await plain.until(edge, (secret) => textOf(edgeOf(secret)).includes('two'))
      t.match(edgeOf(found), {
        routes: [{ models: ['one'] }, { models: ['two'], tokenSha256: /^[0-9a-f]{64}$/ }],
      })
      await plain.patch(ns.path('secrets', 'token'), { stringData: { token: 'another' } })
      await plain.until(edge, (secret) => textOf(edgeOf(secret)) !== textOf(edgeOf(found)))
      // It has the name of another, whose token it must not get around. Of two of one second the first by name has it.
      const rival = { ...ENSEMBLE, modelName: 'two', expose: { ingress: { hosts: ['b.example'] } } }
      await ns.applyEnsemble('two-more', rival)
      await ns.condition('two-more', 'Accepted', 'False', 'NameConflict')
      await ns.applyEnsemble('four', { ...ENSEMBLE, expose: { ingress } })
      const later = await plain.until(edge, (secret) => textOf(edgeOf(secret)).includes('four'))
      t.notMatch(textOf(edgeOf(later)), /b\.example/)
      const made = await plain.until(ns.path('ingresses', 'one-grpc'), isThere)
      t.match(made, {
        metadata: { annotations: { 'nginx.ingress.kubernetes.io/backend-protocol': 'GRPC' } },
        spec: {
          rules: [
            {
              host: 'a.example',
              http: { paths: [{ path: '/inference.GRPCInferenceService' }, {}] },
            },
          ],
        },
      })
      t.ok(await plain.until(ns.path('ingresses', 'one-http'), isThere))
      await ns.applyEnsemble('one', ENSEMBLE)
      await plain.until(ns.path('ingresses', 'one-http'), isGone)
      await plain.until(edge, (secret) => !textOf(edgeOf(secret)).includes('one'))
    },
  )

  await t.test('a route that is in the way is said, and made once it is gone', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    const path = ns.path('ingresses', 'one-http')
    await plain.create(ns.path('ingresses'), {
      metadata: { name: 'one-http' },
      spec: { defaultBackend: { service: { name: 'theirs', port: { number: 80 } } } },
    })
    await ns.applyEnsemble('one', { ...ENSEMBLE, expose: { ingress: { hosts: ['c.example'] } } })
    await ns.condition('one', 'Degraded', 'True', 'RouteConflict')
    await plain.delete(path)
    await ns.condition('one', 'Degraded', 'False')
    t.match(await plain.get(path), { spec: { rules: [{ host: 'c.example' }] } })
  })

  await t.test('what is being deleted is said, by whom it is held, and made anew', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyEnsemble('one', { ...ENSEMBLE, expose: { ingress: { hosts: ['d.example'] } } })
    await untilAll(ns, isThere)
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
      // Nobody collects garbage here: it stays until the test takes the finalizer away.
      await plain.patch(path, { metadata: { finalizers: ['foregroundDeletion'] } })
      const status = isRoute ? 'True' : 'False'
      await ns.condition('one', 'Degraded', 'False')
      const passing = await ns.condition('one', type, status, 'Terminating')
      t.match(saidOf(passing, type), /: is being deleted, and what belongs to it before it; /)
      await plain.patch(path, { metadata: { finalizers: null } })
      await plain.until(path, (now) => ![undefined, metadata.uid].includes(now?.['metadata'].uid))
    }
    await ns.condition('one', 'RouterReady', 'False', 'NoRouters')
  })

  await t.test('a second look writes nothing', async (t) => {
    const rig = await openEnsembleRig(t, server)
    const stop = await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyEnsemble('one', { ...ENSEMBLE, expose: { ingress: { hosts: ['b.example'] } } })
    await untilAll(ns, isThere)
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

await t.test(
  'without Gateway API the condition says so, until it is there',
  { skip: withoutKube() },
  async (t) => {
    const server = await startApiServer()
    t.teardown(() => server.stop())
    await installCrds(server)
    const { plain } = server
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyEnsemble('one', {
      ...ENSEMBLE,
      expose: {
        gateway: { parentRef: { name: 'edge', namespace: 'infra' }, hosts: ['a.example'] },
      },
    })
    await ns.condition('one', 'Degraded', 'True', 'GatewayApiMissing')
    await installGatewayApi(server)
    await ns.condition('one', 'Degraded', 'False')
    const route = await plain.until(ns.path('httproutes', 'one'), isThere)
    t.match(route, {
      spec: {
        parentRefs: [{ name: 'edge', namespace: 'infra', kind: 'Gateway' }],
        hostnames: ['a.example'],
        rules: [
          {
            matches: [
              { path: { type: 'PathPrefix', value: '/inference.GRPCInferenceService' } },
              {},
            ],
            backendRefs: [{ name: 'tutti-router-grpc', port: 9001 }],
          },
          { backendRefs: [{ name: 'tutti-router-http', port: 9000 }] },
        ],
      },
    })
  },
)
