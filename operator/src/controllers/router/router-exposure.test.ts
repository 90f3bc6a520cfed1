// needs: apiserver
import { createHash } from 'node:crypto'
import { type ApiServer, type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { openEnsembleRig } from '../../testing/ensemble-rig.ts'
import { isGone, isThere } from '../../testing/namespaced.ts'
import { installCrds, installGatewayApi } from '../../testing/prepare-server.ts'
import { ENSEMBLE, textOf } from '../../testing/router-objects.ts'

function edgeOf(secret: PlainObject | undefined): unknown {
  const text = Buffer.from(secret?.['data']?.['edge.json'] ?? '', 'base64').toString()
  return text === '' ? undefined : JSON.parse(text)
}

function exposeTo(host: string): PlainObject {
  return { ingress: { hosts: [host] }, auth: { secretRef: { name: 'token' } } }
}

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  const { plain } = server

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
      t.match(edgeOf(await plain.get(edge)), {
        routes: [{ hosts: ['a.example'], models: ['one'], revision: /^[0-9a-f]{32}$/ }],
      })
      await plain.create(ns.path('secrets'), {
        metadata: { name: 'token' },
        stringData: { token: 'secret\n' },
      })
      const found = await plain.until(edge, (secret) => textOf(edgeOf(secret)).includes('two'))
      t.match(edgeOf(found), {
        routes: [{ models: ['one'] }, { models: ['two'], identities: [{ name: 'token' }] }],
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

  await t.test('a token of a ServiceAccount lets in whom the Ensemble names', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    const edge = ns.path('secrets', 'tutti-router-edge')
    const auth = {
      audience: 'plates',
      identities: [{ name: 'batch', serviceAccount: { name: 'batch' } }],
    }
    await ns.applyEnsemble('one', {
      ...ENSEMBLE,
      expose: { ingress: { hosts: ['e.example'] }, auth },
    })
    const secret = await plain.until(edge, (object) => textOf(edgeOf(object)).includes('batch'))
    await ns.condition('one', 'Degraded', 'False')
    t.match(edgeOf(secret), {
      routes: [
        {
          identities: [
            {
              name: 'batch',
              serviceAccount: { namespace: ns.name, name: 'batch', audience: 'plates' },
            },
          ],
        },
      ],
      issuer: { url: /^https:/, keys: [{ kid: String, use: 'sig' }] },
    })
    await ns.applyEnsemble('one', { ...ENSEMBLE, expose: { ingress: { hosts: ['e.example'] } } })
    const open = await plain.until(edge, (object) => !textOf(edgeOf(object)).includes('batch'))
    t.notMatch(textOf(edgeOf(open)), /issuer/, 'no keys where nobody needs them')
  })

  await t.test('access ends although the Router or the keys of NATS are wrong', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    const edge = ns.path('secrets', 'tutti-router-edge')
    const policy = ns.path('networkpolicies', 'tutti-router')
    const setToken = (token: string) =>
      plain.patch(ns.path('secrets', 'token'), { stringData: { token } })
    const untilOther = (before: unknown) =>
      plain.until(edge, (secret) => textOf(edgeOf(secret)) !== textOf(before))
    await plain.create(ns.path('secrets'), {
      metadata: { name: 'token' },
      stringData: { token: 'first' },
    })
    const auth = { secretRef: { name: 'token' } }
    const expose = { ingress: { hosts: ['d.example'] }, auth }
    await ns.applyEnsemble('one', { ...ENSEMBLE, expose })
    await plain.until(ns.path('deployments', 'tutti-router'), isThere)
    const router = ns.path('routers', 'default')
    await plain.patch(router, { spec: { clientNamespaces: ['team-b'] } })
    await plain.until(policy, (object) => textOf(object).includes('team-b'))

    // An image that is not allowed: the rest of the Router stays as it was.
    await plain.patch(router, { spec: { image: 'mine:1', clientNamespaces: null } })
    await ns.condition('one', 'RouterReady', 'False', 'RouterSettingsInvalid')
    await plain.until(policy, (object) => !textOf(object).includes('team-b'))
    const first = edgeOf(await plain.get(edge))
    await setToken('second')
    const second = edgeOf(await untilOther(first))
    await plain.patch(router, { spec: { image: null } })
    await ns.condition('one', 'RouterReady', 'False', 'NoRouters')

    // No credential for NATS can be issued now.
    const keys = '/api/v1/namespaces/default/secrets/tutti-nats-keys'
    const { data = {} } = await plain.get(keys)
    const damaged = Object.fromEntries(Object.keys(data).map((key) => [key, 'eA==']))
    await plain.patch(keys, { data: damaged })
    t.teardown(() => plain.patch(keys, { data }))
    await plain.patch(router, { spec: { scaling: { replicas: 3 } } })
    await ns.condition('one', 'RouterReady', 'False', 'CredentialMissing')
    await plain.delete(ns.path('secrets', 'token'))
    t.same(edgeOf(await untilOther(second)), { routes: [] })
  })

  await t.test('access ends although a finalizer holds a Router that was deleted', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    const edge = ns.path('secrets', 'tutti-router-edge')
    const policy = ns.path('networkpolicies', 'tutti-router')
    const router = ns.path('routers', 'default')
    const untilWithout = async (text: string) =>
      edgeOf(await plain.until(edge, (secret) => !textOf(edgeOf(secret)).includes(text)))
    await plain.create(ns.path('secrets'), {
      metadata: { name: 'token' },
      stringData: { token: 'first' },
    })
    await ns.applyEnsemble('one', { ...ENSEMBLE, expose: exposeTo('e.example') })
    await ns.applyEnsemble('two', { ...ENSEMBLE, expose: exposeTo('f.example') })
    await plain.until(edge, (secret) => /one.*two/.test(textOf(edgeOf(secret))))
    await plain.until(ns.path('deployments', 'tutti-router'), isThere)
    const finalizers = ['example.com/stay']
    await plain.patch(router, { metadata: { finalizers }, spec: { clientNamespaces: ['team-b'] } })
    await plain.until(policy, (object) => textOf(object).includes('team-b'))
    await plain.delete(router)
    await ns.condition('one', 'Degraded', 'True', 'Terminating')

    await plain.patch(router, { spec: { clientNamespaces: null } })
    await plain.until(policy, (object) => !textOf(object).includes('team-b'))
    await plain.patch(ns.path('secrets', 'token'), { stringData: { token: 'second' } })
    // Each Ensemble is looked at in its own turn.
    const second = await untilWithout(createHash('sha256').update('first').digest('hex'))
    t.match(second, { routes: [{ models: ['one'] }, { models: ['two'] }] })
    await plain.delete(ns.path('ensembles', 'one'))
    t.match(await untilWithout('"one"'), { routes: [{ models: ['two'] }] })
    await plain.delete(ns.path('ensembles', 'two'))
    t.same(await untilWithout('"two"'), { routes: [] })
    // The Secret that is gone stays gone.
    await plain.delete(edge)
    await plain.patch(router, { spec: { clientNamespaces: ['team-c'] } })
    await plain.until(policy, (object) => textOf(object).includes('team-c'))
    t.notOk(isThere(await plain.get(edge).catch(() => undefined)))
    await plain.patch(router, { metadata: { finalizers: null } })
    await plain.until(router, isGone)
  })

  await t.test(
    'a condition names a foreign route of the name, and ours is created once that is gone',
    async (t) => {
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
    },
  )
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
