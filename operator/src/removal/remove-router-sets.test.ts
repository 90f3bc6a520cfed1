// needs: apiserver
import { readFile, writeFile } from 'node:fs/promises'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import {
  type ApiServer,
  type PlainObject,
  startApiServer,
  startHttpFaultProxy,
  withoutKube,
} from '@tutti/kube/testing'
import t from 'tap'

const MAIN = new URL('../main.ts', import.meta.url).pathname

const LABELS = { 'app.kubernetes.io/managed-by': 'tutti-operator' }
const ROUTER = { ...LABELS, 'app.kubernetes.io/component': 'router' }

function deployment(name: string, labels: PlainObject, match: PlainObject): PlainObject {
  const containers = [{ name: 'main', image: 'x:1' }]
  const template = { metadata: { labels: match }, spec: { containers } }
  return {
    metadata: { name, labels },
    spec: { replicas: 1, selector: { matchLabels: match }, template },
  }
}

/** The objects of one namespace: a router set, a step of a Model, and what is not the operator's. */
async function fillNamespace(server: ApiServer, name: string): Promise<void> {
  const { plain } = server
  await plain.create('/api/v1/namespaces', { metadata: { name } })
  const [core, apps] = [`/api/v1/namespaces/${name}`, `/apis/apps/v1/namespaces/${name}`]
  const router = { name: 'tutti-router', labels: ROUTER }
  await plain.create(`${apps}/deployments`, deployment('tutti-router', ROUTER, ROUTER))
  const step = { ...LABELS, 'app.kubernetes.io/component': 'step' }
  await plain.create(`${apps}/deployments`, deployment('model', step, step))
  await plain.create(`${core}/serviceaccounts`, { metadata: router })
  await plain.create(`${core}/services`, { metadata: router, spec: { ports: [{ port: 1 }] } })
  await plain.create(`${core}/services`, {
    metadata: { name: 'other' },
    spec: { ports: [{ port: 1 }] },
  })
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`
  await plain.create(`${rbac}/roles`, { metadata: router, rules: [] })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'tutti-router' }
  await plain.create(`${rbac}/rolebindings`, { metadata: router, roleRef })
  const spec = { podSelector: {} }
  const networking = `/apis/networking.k8s.io/v1/namespaces/${name}/networkpolicies`
  await plain.create(networking, { metadata: router, spec })
  const budget = { maxUnavailable: 1, selector: { matchLabels: ROUTER } }
  const budgets = `/apis/policy/v1/namespaces/${name}/poddisruptionbudgets`
  await plain.create(budgets, { metadata: router, spec: budget })
  const labels =
    name === 'theirs' ? {} : { ...LABELS, 'app.kubernetes.io/component': 'credentials' }
  await plain.create(`${core}/secrets`, { metadata: { name: 'tutti-nats', labels } })
  const edge = { name: 'tutti-router-edge', labels: name === 'theirs' ? {} : ROUTER }
  await plain.create(`${core}/secrets`, { metadata: edge })
}

async function namesIn(server: ApiServer, namespace: string): Promise<string[]> {
  const kinds = [
    '/api/v1|services',
    '/api/v1|serviceaccounts',
    '/api/v1|secrets',
    '/apis/apps/v1|deployments',
    '/apis/rbac.authorization.k8s.io/v1|roles',
    '/apis/rbac.authorization.k8s.io/v1|rolebindings',
    '/apis/networking.k8s.io/v1|networkpolicies',
    '/apis/policy/v1|poddisruptionbudgets',
  ]
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const [group, plural] = kind.split('|')
      const items = await server.plain.list(`${group}/namespaces/${namespace}/${plural}`)
      return items.map(({ metadata }) => `${plural} ${metadata.name}`)
    }),
  )
  return lists.flat().toSorted()
}

await t.test('router sets go, and nothing else', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  for (const name of ['a', 'b', 'theirs']) await fillNamespace(server, name)
  await server.plain.create('/api/v1/namespaces', { metadata: { name: 'tutti-system' } })
  const match = { app: 'operator' }
  const system = '/apis/apps/v1/namespaces/tutti-system/deployments'
  await server.plain.create(system, deployment('op', {}, match))
  const pods = '/api/v1/namespaces/tutti-system/pods'
  const spec = { containers: [{ name: 'main', image: 'x:1' }] }
  await server.plain.create(pods, { metadata: { name: 'op-1', labels: match }, spec })
  const env = {
    KUBECONFIG: await server.kubeconfig(),
    POD_NAMESPACE: 'tutti-system',
  }
  const run = async (...args: string[]): Promise<StartedProcess> =>
    await startProcess(process.execPath, [MAIN, 'remove-router-sets', ...args], { env })

  const unasked = await run()
  t.same(await unasked.exited, { code: 2, signal: null })
  t.match(unasked.lines.join('\n'), '--operator-deployment: got none, want a name')

  const waiting = await run('--operator-deployment=op', '--wait-secs=1')
  t.same(await waiting.exited, { code: 1, signal: null })
  t.match(waiting.lines.join('\n'), "the operator's pods do not end: op-1")
  t.match(await namesIn(server, 'a'), ['deployments model', 'deployments tutti-router'])

  const first = await run('--operator-deployment=op', '--watch-namespace=a')
  await server.plain.until(`${system}/op`, (object) => object?.['spec'].replicas === 0)
  await server.plain.delete(`${pods}/op-1`, { gracePeriodSeconds: 0 })
  t.same(await first.exited, { code: 0, signal: null }, first.lines.join('\n'))
  const kept = ['deployments model', 'services other']
  t.same(await namesIn(server, 'a'), kept)
  t.equal((await namesIn(server, 'b')).length, 11, 'other namespaces stay')

  const second = await run('--operator-deployment=op')
  t.same(await second.exited, { code: 0, signal: null }, second.lines.join('\n'))
  t.same(await namesIn(server, 'b'), kept)
  const theirs = ['secrets tutti-nats', 'secrets tutti-router-edge']
  t.same(await namesIn(server, 'theirs'), [...kept, ...theirs].toSorted())

  // What fails half way is found again.
  await fillNamespace(server, 'half')
  const proxy = await startHttpFaultProxy(server)
  t.teardown(() => proxy.close())
  const config = await readFile(env.KUBECONFIG, 'utf8')
  await writeFile(env.KUBECONFIG, config.replaceAll(server.url.host, proxy.url.host))
  proxy.addRule({ path: /secrets/, isWrite: true, fault: { type: 'answer', status: 403 } })
  const failing = await run('--operator-deployment=op')
  t.same(await failing.exited, { code: 1, signal: null }, failing.lines.join('\n'))
  proxy.clear()
  const third = await run('--operator-deployment=op')
  t.same(await third.exited, { code: 0, signal: null }, third.lines.join('\n'))
  t.same(await namesIn(server, 'half'), kept)

  const again = await run('--operator-deployment=gone')
  t.same(await again.exited, { code: 0, signal: null }, again.lines.join('\n'))
})
