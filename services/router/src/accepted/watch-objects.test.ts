// needs: apiserver
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { parseServedByRouter, toDescriptionJson } from '@tutti/api'
import { createHealth, createLogger, loadTracingSettings, parseFlags } from '@tutti/chassis'
import {
  type HttpFaultProxy,
  installCrd,
  type PlainObject,
  startApiServer,
  startHttpFaultProxy,
  withoutKube,
} from '@tutti/kube/testing'
import { normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import t, { type Test } from 'tap'
import { ROUTER_FLAGS } from '../serve/router-flags.ts'
import { startRouter } from '../serve/start-router.ts'
import {
  echoing,
  ensembleRevision,
  modelRevision,
  ScriptedRouterEndpoint,
} from '../testing/index.ts'
import type { RevisionObject } from './accepted-revisions.ts'

const NAMESPACE = 'team-a'
const ROUTER_ROLE = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'router', namespace: NAMESPACE },
  rules: [
    { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: ['get', 'list', 'watch'] },
    {
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: ['tutti-router-edge'],
      verbs: ['get', 'list', 'watch'],
    },
    // With a console.
    { apiGroups: ['tutti.dev'], resources: ['models', 'ensembles'], verbs: ['list'] },
  ],
}
const crd = (kind: string) => {
  const singular = kind.toLowerCase()
  const plural = `${singular}s`
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  return {
    metadata: { name: `${plural}.tutti.dev` },
    spec: {
      group: 'tutti.dev',
      scope: 'Namespaced',
      names: { plural, singular, kind, listKind: `${kind}List` },
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: any },
        },
      ],
    },
  }
}
const ROUTER_BINDING = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'router', namespace: NAMESPACE },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'router' },
  subjects: [{ kind: 'ServiceAccount', name: 'router', namespace: NAMESPACE }],
}
const RBAC = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`
const IO = `
  backend: "onnxruntime"
  input { name: "X" data_type: TYPE_FP32 dims: 2 }
  output { name: "Y" data_type: TYPE_FP32 dims: 2 }`
const ENSEMBLE = `platform: "ensemble" ${IO.replace('backend: "onnxruntime"', '')}
  ensemble_scheduling { step { model_name: "m" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`
const revisionsOf = (namespace: string): string =>
  `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`

/** Makes the object as the operator writes it. */
function stored({ metadata: { name }, revision, data }: RevisionObject, namespace = NAMESPACE) {
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: { name, namespace, labels: { 'tutti.dev/accepted': 'model' } },
    revision,
    data,
  }
}

const get = (port: unknown, path: string, o?: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${Number(port)}${path}`, o)

/** A router in a pod of the namespace, behind a proxy to the API server. */
async function open(t: Test, proxy: HttpFaultProxy, serviceAccountDir: string) {
  const endpoint = new ScriptedRouterEndpoint()
  const { values: flags } = parseFlags(ROUTER_FLAGS, [
    '--nats=nats://nowhere.invalid:4222',
    '--kubernetes',
    `--repository-name=${NAMESPACE}`,
    '--console-port=0',
    '--edge-secret-name=tutti-router-edge',
    '--edge-address=127.0.0.1',
    '--edge-grpc-port=0',
    '--edge-http-port=0',
    ...['grpc', 'http', 'metrics'].flatMap((listener) => [
      `--${listener}-address=127.0.0.1`,
      `--${listener}-port=0`,
    ]),
  ])
  const health = createHealth()
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const running = await startRouter({
    flags,
    settings: loadTracingSettings({}),
    env: {
      KUBERNETES_SERVICE_HOST: proxy.url.hostname,
      KUBERNETES_SERVICE_PORT: proxy.url.port,
      TUTTI_SERVICE_ACCOUNT_DIR: serviceAccountDir,
    },
    log,
    health,
    signal: new AbortController().signal,
    openEndpoint: endpoint.open,
  })
  t.teardown(() => running.close())
  health.release('starting')
  const ports = lines
    .map((line) => JSON.parse(line))
    .find(({ metricsPort }) => metricsPort !== undefined)
  return {
    endpoint,
    isReady: async () => (await get(ports?.metricsPort, '/readyz')).status === 200,
    accepted: async () =>
      parseServedByRouter(await (await get(ports?.metricsPort, '/tutti/v1/served')).json())
        .accepted,
    overview: async (): Promise<PlainObject> =>
      JSON.parse(await (await get(ports?.consolePort, '/console/api/overview')).text()),
    exposed: async () =>
      parseServedByRouter(await (await get(ports?.metricsPort, '/tutti/v1/served')).json()).exposed,
    /** The status of a call from outside. */
    callEdge: (host: string, token: string) => callEdge(ports?.edgeHttpPort, host, token),
    post: (path: string, body: object) =>
      get(ports?.httpPort, path, { method: 'POST', body: JSON.stringify(body) }),
  }
}

/** As the operator writes it. */
function edge(token: string, revision: string) {
  const tokenSha256 = createHash('sha256').update(token).digest('hex')
  const routes = [
    { hosts: ['a.example'], models: ['m'], identities: [{ name: 'token', tokenSha256 }], revision },
  ]
  return { stringData: { 'edge.json': JSON.stringify({ routes }) } }
}

/** fetch sets the header Host itself. */
function callEdge(port: unknown, host: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { host, authorization: `Bearer ${token}` }
    request({ host: '127.0.0.1', port: Number(port), path: '/v2/models/m', headers }, (answer) =>
      resolve(answer.resume().statusCode),
    )
      .on('error', reject)
      .end()
  })
}

/** A step that serves `m` under the revision. */
function step(endpoint: ScriptedRouterEndpoint, replica: string, revision: string): void {
  const config = normaliseModelConfig(parseModelConfig(`name: "m" ${IO}`, 'config.pbtxt'))
  const versions = [{ version: 1, revision, state: 'READY' as const, reason: '' }]
  const models = [{ name: 'm', config, labels: {}, versions, reason: '' }]
  endpoint.announce(replica, [['m', 1, revision]], async () =>
    toDescriptionJson({ replica, models }),
  )
  endpoint.executors.set(replica, echoing('Y'))
}

const DEADLINE_MS = 60_000

/** Looks until it is so. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + DEADLINE_MS
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error('it did not become so')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const same = (got: readonly string[], want: readonly string[]): boolean =>
  JSON.stringify(got) === JSON.stringify(want)

const INPUTS = { inputs: [{ name: 'X', datatype: 'FP32', shape: [2], data: [1, 2] }] }

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const proxy = await startHttpFaultProxy(server)
  t.teardown(() => proxy.close())
  const { plain } = server
  const serviceAccountDir = await server.createServiceAccountDir(NAMESPACE, 'router')
  await plain.create(`${RBAC}/roles`, ROUTER_ROLE)
  await plain.create(`${RBAC}/rolebindings`, ROUTER_BINDING)
  await server.createServiceAccountDir('team-b', 'router')
  await Promise.all(['Model', 'Ensemble'].map((kind) => installCrd(plain, crd(kind))))
  const model = (name: string, revision: number, step: string) =>
    modelRevision({ name, model: 'm', config: IO, revision, versions: { 1: step } })
  const ensemble = ensembleRevision({
    name: 'e-1',
    model: 'e',
    config: ENSEMBLE,
    models: { m: IO },
    beyond: { timeoutMs: 30_000, maxInFlightRequests: 8 },
  })
  await plain.create(revisionsOf(NAMESPACE), stored(model('m-1', 1, 'old')))
  await plain.create(
    revisionsOf('team-b'),
    stored(model('other-1', 1, 'of another namespace'), 'team-b'),
  )
  await plain.create(revisionsOf(NAMESPACE), {
    ...stored(model('unlabelled-1', 3, 'new')),
    metadata: { name: 'unlabelled-1', namespace: NAMESPACE },
  })
  const router = await open(t, proxy, serviceAccountDir)
  await until(router.isReady)

  await t.test('what the operator wrote is served, and nothing else', async (t) => {
    step(router.endpoint, 'a', 'old')
    step(router.endpoint, 'b', 'of another namespace')
    step(router.endpoint, 'c', 'new')
    await until(async () => same(await router.accepted(), ['m-1']))
    await plain.create(revisionsOf(NAMESPACE), stored(ensemble))
    await until(async () => same(await router.accepted(), ['e-1', 'm-1']))
    const answer = await router.post('/v2/models/e/infer', INPUTS)
    t.match(await answer.json(), { outputs: [{ name: 'Y', data: [1, 2] }] })
  })

  await t.test(
    'hosts and tokens count as soon as the Secret has them, and end with it',
    async (t) => {
      const secrets = `/api/v1/namespaces/${NAMESPACE}/secrets`
      t.same(await router.exposed(), [])
      t.equal(await router.callEdge('a.example', 'one'), 404)
      const metadata = { name: 'tutti-router-edge' }
      await plain.create(secrets, { metadata, ...edge('one', 'r1') })
      await plain.create(secrets, { metadata: { name: 'other' }, ...edge('two', 'other') })
      await until(async () => same((await router.exposed()) ?? [], ['r1']))
      t.equal(await router.callEdge('a.example', 'one'), 200, 'the first call')
      t.equal(await router.callEdge('a.example', 'two'), 401)
      await plain.patch(`${secrets}/tutti-router-edge`, edge('two', 'r2'))
      await until(async () => same((await router.exposed()) ?? [], ['r2']))
      t.equal(await router.callEdge('a.example', 'one'), 401, 'it was revoked')
      t.equal(await router.callEdge('a.example', 'two'), 200)
      proxy.refuse()
      proxy.cut()
      t.equal(await router.callEdge('a.example', 'two'), 200, 'without the API server')
      await plain.delete(`${secrets}/tutti-router-edge`)
      proxy.accept()
      await until(async () => same((await router.exposed()) ?? [], []))
      t.equal(await router.callEdge('a.example', 'two'), 404)
      await plain.delete(`${secrets}/other`)
    },
  )

  await t.test('a rollout: old and new, then only new', async (t) => {
    await plain.create(revisionsOf(NAMESPACE), stored(model('m-2', 2, 'new')))
    await until(async () => same(await router.accepted(), ['e-1', 'm-1', 'm-2']))
    await plain.delete(`${revisionsOf(NAMESPACE)}/m-1`)
    await until(async () => same(await router.accepted(), ['e-1', 'm-2']))
    t.equal((await router.post('/v2/models/m/infer', INPUTS)).status, 200)
  })

  await t.test(
    'the console shows what the operator refused, and asks nothing before',
    async (t) => {
      const ensembles = `/apis/tutti.dev/v1alpha1/namespaces/${NAMESPACE}/ensembles`
      await plain.create(ensembles, {
        apiVersion: 'tutti.dev/v1alpha1',
        kind: 'Ensemble',
        metadata: { name: 'refused' },
        spec: { modelName: 'faces' },
      })
      const message = 'steps[0](a).inputMap[x]: no'
      const refusal = {
        reason: 'UnknownTensor',
        message,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      }
      const conditions = ['Accepted', 'Ready'].map((type) => ({
        type,
        status: 'False',
        ...refusal,
      }))
      await plain.patch(`${ensembles}/refused/status`, {
        status: { observedGeneration: 1, conditions },
      })
      const cluster: PlainObject = (await router.overview())['cluster']
      t.match(cluster, { namespace: NAMESPACE, failure: '', leftOut: 0 })
      t.match(cluster['unready'], [
        { kind: 'Ensemble', name: 'refused', model: 'faces', state: 'refused', message },
      ])
      t.equal(cluster['unready'].length, 1)
    },
  )

  await t.test('the Model resource rules what is loaded', async (t) => {
    for (const verb of ['load', 'unload']) {
      const answer = await router.post(`/v2/repository/models/m/${verb}`, {})
      t.equal(answer.status, 503)
      t.match(await answer.json(), { error: /the Model resource rules what is loaded/ })
    }
  })

  await t.test('without the API server all goes on, and steps that come again serve', async (t) => {
    await server.kill()
    t.equal(await router.isReady(), true)
    router.endpoint.remove('c')
    await until(async () => same(await router.accepted(), []))
    t.equal((await router.post('/v2/models/m/infer', INPUTS)).status, 503)
    step(router.endpoint, 'c2', 'new')
    await until(async () => same(await router.accepted(), ['e-1', 'm-2']))
    t.equal((await router.post('/v2/models/e/infer', INPUTS)).status, 200)
    const late = await open(t, proxy, serviceAccountDir)
    t.equal(await late.isReady(), false, 'it has read nothing yet')
    const answer = await late.post('/v2/models/m/infer', INPUTS)
    t.equal(answer.status, 503, 'the model may well be there')
    t.match(await answer.json(), { error: /is not known yet/ })
    await server.restart()
    await until(late.isReady)
    await plain.create(revisionsOf(NAMESPACE), stored(model('m-3', 3, 'newest')))
    step(router.endpoint, 'd', 'newest')
    await until(async () => same(await router.accepted(), ['e-1', 'm-2', 'm-3']))
  })

  await t.test('what happened while the API server was away counts afterwards', async (t) => {
    proxy.refuse()
    proxy.cut()
    await plain.delete(`${revisionsOf(NAMESPACE)}/m-2`)
    await plain.delete(`${revisionsOf(NAMESPACE)}/e-1`)
    await plain.create(revisionsOf(NAMESPACE), stored(model('m-4', 4, 'latest')))
    step(router.endpoint, 'e', 'latest')
    t.same(await router.accepted(), ['e-1', 'm-2', 'm-3'])
    proxy.accept()
    await until(async () => same(await router.accepted(), ['m-3', 'm-4']))
    t.equal((await router.post('/v2/models/e/infer', INPUTS)).status, 404)
  })
})
