// needs: nats, apiserver
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, startNatsServer, withoutNatsServer } from '@tutti/chassis/testing'
import { type ApiServer, withoutKube } from '@tutti/kube/testing'
import { connect, credsAuthenticator } from 'nats'
import t from 'tap'
import { startChartCluster, startChartPod } from './chart-pods.ts'
import { find, render } from './helm.ts'

const routerOf = (name: string) => `/apis/tutti.dev/v1alpha1/namespaces/${name}/routers/default`
const isSeen = (one: { status?: { observedGeneration?: number } } | undefined, at: number) =>
  one?.status?.observedGeneration === at
const WITH_KUBE = { skip: withoutKube('helm') }

const NAMES = ['default', 'tutti-router', 'tutti-router-edge', 'tutti-nats', 'other']

/** For objects of which names the operator's account has a right, in a namespace that it serves, as the server says. */
async function allowedNames(
  { plain }: ApiServer,
  verb: string,
  [group, resource]: readonly [group: string, resource: string],
): Promise<readonly string[]> {
  const allowed: string[] = []
  for (const name of NAMES) {
    const review = await plain.create('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      spec: {
        user: 'system:serviceaccount:tutti-system:tutti-operator',
        resourceAttributes: { group, resource, verb, name, namespace: 'a' },
      },
    })
    if (review['status'].allowed === true) allowed.push(name)
  }
  return allowed
}

await t.test('as the accounts of the chart', WITH_KUBE, async (t) => {
  const objects = await render()
  const server = await startChartCluster(t, objects)
  const { plain } = server

  await t.test(
    'the operator leads with the flags and the rights that the chart gives it',
    async (t) => {
      const workload = find(objects, 'Deployment', 'tutti-operator')
      const operator = await startChartPod(t, server, workload, {
        readyWhen: (line) => line.includes('"leading"'),
      })
      const lease = '/apis/coordination.k8s.io/v1/namespaces/tutti-system/leases/tutti-operator'
      t.match(await plain.get(lease), { spec: { holderIdentity: /^tutti-operator-0_/ } })
      t.same(await operator.stop(), { code: 0, signal: null })
      t.notMatch(operator.lines.join('\n'), /forbidden/i)
    },
  )

  await t.test('the operator changes only its own objects, where names are fixed', async (t) => {
    const ROLES = ['rbac.authorization.k8s.io', 'roles'] as const
    const cases = [
      [ROLES, ['tutti-router']],
      [['rbac.authorization.k8s.io', 'rolebindings'], ['tutti-router']],
      [
        ['', 'secrets'],
        ['tutti-router-edge', 'tutti-nats'],
      ],
      // Deployments belong to Models of any names.
      [['apps', 'deployments'], NAMES],
    ] as const
    for (const verb of ['patch', 'delete']) {
      for (const [kind, wanted] of cases) {
        t.same(await allowedNames(server, verb, kind), wanted, `${verb} ${kind[1]}`)
      }
    }
    const ROUTERS = ['tutti.dev', 'routers'] as const
    t.same(await allowedNames(server, 'delete', ROUTERS), ['default'])
    t.same(await allowedNames(server, 'patch', ROUTERS), [])
    for (const verb of ['update', 'bind', 'escalate', 'deletecollection']) {
      t.same(await allowedNames(server, verb, ROLES), [], verb)
    }
  })

  await t.test('and gives a namespace its Router, with all that belongs to it', async (t) => {
    const createNamespace = async (name: string) => {
      await plain.create('/api/v1/namespaces', { metadata: { name } })
      await plain.apply(`/apis/tutti.dev/v1alpha1/namespaces/${name}/models/m`, {
        apiVersion: 'tutti.dev/v1alpha1',
        kind: 'Model',
        metadata: { name: 'm' },
        spec: { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/m' },
      })
    }
    await createNamespace('a')
    await createNamespace('b')
    const operator = await startChartPod(t, server, find(objects, 'Deployment', 'tutti-operator'))
    const router = await plain.until(routerOf('a'), (one) => isSeen(one, 1))
    t.same(router?.['spec'], {})
    const made = await plain.get('/apis/apps/v1/namespaces/a/deployments/tutti-router')
    t.match(made['metadata'].ownerReferences, [{ kind: 'Router', name: 'default' }])
    await plain.patch(routerOf('a'), { spec: { scaling: { replicas: 3 } } })
    await plain.until(routerOf('b'), (one) => isSeen(one, 1))
    for (const name of ['a', 'b']) {
      await plain.delete(`/apis/tutti.dev/v1alpha1/namespaces/${name}/models/m`)
    }
    await plain.until(routerOf('b'), (one) => one === undefined)
    t.ok(await plain.get(routerOf('a')), 'one that holds settings stays')
    t.same(await operator.stop(), { code: 0, signal: null })
    t.notMatch(operator.lines.join('\n'), /forbidden/i)
  })
})

await t.test(
  'the operator tells servers who there is, as the chart has both',
  { skip: withoutKube('helm') || withoutNatsServer() },
  async (t) => {
    const objects = await render()
    const server = await startChartCluster(t, objects)
    const { plain } = server
    const port = await freePort()
    const workload = find(objects, 'Deployment', 'tutti-operator')
    const [container] = workload['spec'].template.spec.containers
    container.args = container.args.map((arg: string) =>
      arg.startsWith('--nats=') ? `--nats=tls://localhost:${port}` : arg,
    )
    const operator = await startChartPod(t, server, workload, {
      readyWhen: (line) => line.includes('"leading"'),
    })
    const space = '/api/v1/namespaces/tutti-system'
    const secret = await plain.until(`${space}/secrets/tutti-nats-server`, (one) => !!one)
    const folder = t.testdir()
    for (const [name, text] of Object.entries<string>(secret?.['data'])) {
      writeFileSync(join(folder, name), Buffer.from(text, 'base64'))
    }
    const text: string = find(objects, 'ConfigMap', 'tutti-nats')['data']['nats.conf']
    const nats = await startNatsServer({
      port,
      config: text
        .replace('port: 4222', '')
        .replace(':8222', ':-1')
        .replaceAll(/\/etc\/nats|\/data/g, folder),
      files: { 'tenancy.conf': readFileSync(join(folder, 'tenancy.conf'), 'utf8') },
      env: { POD_NAME: 'tutti-nats-0' },
    })
    t.teardown(() => nats.stop())
    await plain.create('/api/v1/namespaces', { metadata: { name: 'a' } })
    await plain.apply('/apis/tutti.dev/v1alpha1/namespaces/a/models/m', {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Model',
      metadata: { name: 'm' },
      spec: { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/m' },
    })
    await operator.waitForLine((line) => /"updated":1.*nats accounts told/.test(line))
    const { data } = await plain.get('/api/v1/namespaces/a/secrets/tutti-nats')
    const read = (name: string): string => Buffer.from(data[name], 'base64').toString()
    const connection = await connect({
      servers: `localhost:${port}`,
      tls: { ca: read('ca.crt') },
      authenticator: credsAuthenticator(Buffer.from(data['nats.creds'], 'base64')),
    })
    t.teardown(() => connection.close())
    const made = await plain.until(
      '/apis/apps/v1/namespaces/a/deployments/tutti-router',
      (one) => !!one,
    )
    const pod = made?.['spec'].template.spec
    t.match(pod.volumes, [{ name: 'nats', secret: { secretName: 'tutti-nats' } }])
    t.ok(pod.containers[0].args.includes(`tls://localhost:${port}`))
    t.ok(pod.containers[0].args.includes('--nats-tls-ca'))
    t.same(await operator.stop(), { code: 0, signal: null })
    t.notMatch(operator.lines.join('\n'), /forbidden/i)
  },
)
