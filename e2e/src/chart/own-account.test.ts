import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  findNatsServer,
  type StartedProcess,
  startProcess,
  withoutNatsServer,
} from '@tutti/chassis/testing'
import { type ApiServer, startApiServer, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { ROOT } from '../serving.ts'
import { find, type Rendered, render } from './helm.ts'

const WITH_KUBE = { skip: withoutKube('helm') }

const OPERATOR = `${ROOT}operator/dist/main.js`
const ROLES = ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']

/** A cluster with what the chart says of accounts and roles, and its CRDs. */
async function startCluster(t: Test, objects: readonly Rendered[]): Promise<ApiServer> {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const { plain } = server
  await plain.create('/api/v1/namespaces', { metadata: { name: 'tutti-system' } })
  for (const object of objects) {
    if (object['kind'] === 'CustomResourceDefinition') {
      await plain.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', object)
    }
    if (!ROLES.includes(object['kind'])) continue
    const { apiVersion, kind, metadata } = object
    const group = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const space = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
    await plain.create(`${group}${space}/${kind.toLowerCase()}s`, object)
  }
  return server
}

/** Starts the program of a pod of the chart: its arguments, as its service account, with other ports. */
async function startPod(
  t: Test,
  server: ApiServer,
  workload: Rendered,
  readyWhen?: (line: string) => boolean,
): Promise<StartedProcess> {
  const { serviceAccountName, containers } = workload['spec'].template.spec
  const folder = await server.createServiceAccountDir('tutti-system', serviceAccountName)
  const env = {
    KUBERNETES_SERVICE_HOST: server.url.hostname,
    KUBERNETES_SERVICE_PORT: server.url.port,
    TUTTI_SERVICE_ACCOUNT_DIR: folder,
    POD_NAMESPACE: 'tutti-system',
    POD_NAME: 'tutti-operator-0',
  }
  const args = containers[0].args.map((arg: string) => arg.replace(/^(--\w+-port)=\d+$/, '$1=0'))
  const started = await startProcess(process.execPath, [OPERATOR, ...args], {
    env,
    ...(readyWhen !== undefined && { readyWhen, readyTimeoutMs: 120_000 }),
  })
  t.teardown(() => started.stop('SIGKILL'))
  return started
}

/** Starts the servers' program with the files that its pods get, on a port of its own. */
async function startNats(
  t: Test,
  server: ApiServer,
  objects: readonly Rendered[],
): Promise<StartedProcess> {
  const path = '/api/v1/namespaces/tutti-system/secrets/tutti-nats-server'
  const secret = await server.plain.until(path, (object) => object !== undefined)
  const folder = await mkdtemp(join(tmpdir(), 'tutti-chart-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries<string>(secret?.['data'])) {
    await writeFile(join(folder, name), Buffer.from(text, 'base64'))
  }
  const text: string = find(objects, 'ConfigMap', 'tutti-nats')['data']['nats.conf']
  const elsewhere = text.replace('port: 4222', 'listen: "127.0.0.1:-1"').replace(':8222', ':-1')
  await writeFile(join(folder, 'nats.conf'), elsewhere)
  const started = await startProcess(
    findNatsServer() ?? '',
    ['--config', join(folder, 'nats.conf')],
    {
      env: { POD_NAME: 'tutti-nats-0' },
      readyWhen: (line) => line.includes('Server is ready'),
    },
  )
  t.teardown(() => started.stop())
  return started
}

await t.test('as the accounts of the chart', WITH_KUBE, async (t) => {
  const objects = await render()
  const server = await startCluster(t, objects)
  const { plain } = server

  await t.test(
    'the operator leads with the flags and the rights that the chart gives it',
    async (t) => {
      const workload = find(objects, 'Deployment', 'tutti-operator')
      const operator = await startPod(t, server, workload, (line) => line.includes('"leading"'))
      const lease = '/apis/coordination.k8s.io/v1/namespaces/tutti-system/leases/tutti-operator'
      t.match(await plain.get(lease), { spec: { holderIdentity: /^tutti-operator-0_/ } })
      if (withoutNatsServer() === false) {
        const nats = await startNats(t, server, objects)
        t.ok(nats, 'NATS starts with what the operator has made for it')
      }
      t.same(await operator.stop(), { code: 0, signal: null })
      t.notMatch(operator.lines.join('\n'), /forbidden/i)
    },
  )

  await t.test('what runs before the release is uninstalled may do what it has to', async (t) => {
    const deployments = '/apis/apps/v1/namespaces/tutti-system/deployments'
    await plain.create(deployments, find(objects, 'Deployment', 'tutti-operator'))
    await plain.create('/api/v1/namespaces', { metadata: { name: 'a' } })
    const labels = {
      'app.kubernetes.io/managed-by': 'tutti-operator',
      'app.kubernetes.io/component': 'router',
    }
    const account = { metadata: { name: 'tutti-router', labels } }
    await plain.create('/api/v1/namespaces/a/serviceaccounts', account)
    await plain.create('/api/v1/namespaces/a/secrets', { metadata: { name: 'tutti-nats', labels } })
    const removal = await startPod(t, server, find(objects, 'Job', 'tutti-removal'))
    t.same(await removal.exited, { code: 0, signal: null }, removal.lines.join('\n'))
    t.same(await plain.list('/api/v1/namespaces/a/serviceaccounts'), [])
    t.same(await plain.list('/api/v1/namespaces/a/secrets'), [])
    const { spec } = await plain.get(`${deployments}/tutti-operator`)
    t.equal(spec.replicas, 0)
  })
})
