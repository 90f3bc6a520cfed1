// needs: apiserver
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { findKubeBinaries, withoutKube } from './find-kube-binaries.ts'
import { plainClient } from './plain-client.ts'
import { startApiServer } from './start-api-server.ts'

const run = promisify(execFile)

await t.test(
  'users and service accounts have the rights that they are given',
  {
    skip: withoutKube('kubectl'),
  },
  async (t) => {
    const server = await startApiServer({
      users: [{ token: 'reader', user: 'reader', groups: ['readers'] }],
      flags: ['--min-request-timeout=5'],
    })
    t.teardown(() => server.stop())
    const { plain } = server
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    await plain.create(`${rbac}/clusterroles`, {
      metadata: { name: 'readers' },
      rules: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['list'] }],
    })
    await plain.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: 'readers' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'readers' },
      subjects: [{ kind: 'Group', name: 'readers', apiGroup: 'rbac.authorization.k8s.io' }],
    })
    const as = (token: string) => {
      const client = plainClient({ url: server.url, ca: server.ca, token })
      t.teardown(() => client.close())
      return client
    }
    const reader = as('reader')
    const namespaces = async () => (await reader.send('GET', '/api/v1/namespaces')).status
    // What decides on rights hears of them a moment after they were given.
    let status = await namespaces()
    while (status === 403) status = await namespaces()
    t.equal(status, 200)
    t.equal((await reader.send('GET', '/api/v1/secrets')).status, 403)
    t.equal((await as('other').send('GET', '/api/v1/namespaces')).status, 401)

    const folder = await server.createServiceAccountDir('ns', 'robot')
    const token = readFileSync(join(folder, 'token'), 'utf8')
    const review = await plain.create('/apis/authentication.k8s.io/v1/tokenreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token },
    })
    t.equal(review['status'].user.username, 'system:serviceaccount:ns:robot')
    t.equal(readFileSync(join(folder, 'ca.crt'), 'utf8'), server.ca)

    const kubectl = join(findKubeBinaries() ?? '', 'kubectl')
    const kubeconfig = await server.kubeconfig()
    const { stdout } = await run(kubectl, [
      '--kubeconfig',
      kubeconfig,
      'get',
      'serviceaccounts',
      '-n=ns',
    ])
    t.match(stdout, /robot/)
  },
)

await t.test(
  'a held server answers nobody, a restarted one has its data',
  {
    skip: withoutKube(),
  },
  async (t) => {
    const server = await startApiServer()
    t.teardown(() => server.stop())
    await server.plain.create('/api/v1/namespaces', { metadata: { name: 'kept' } })
    server.pause()
    const answer = server.plain.get('/api/v1/namespaces/kept')
    server.resume()
    t.match(await answer, { metadata: { name: 'kept' } })
    const { url } = server
    await server.kill()
    await t.rejects(server.plain.get('/version'), { code: 'ECONNREFUSED' })
    await server.restart()
    t.equal(server.url.href, url.href)
    t.match(await server.plain.get('/api/v1/namespaces/kept'), { metadata: { name: 'kept' } })
    t.ok(server.lines.length > 0)
    await server.stop()
    await server.stop()
  },
)

await t.test('several run at once', { skip: withoutKube() }, async (t) => {
  const [first, second] = await Promise.all([startApiServer(), startApiServer()])
  t.teardown(() => Promise.all([first.stop(), second.stop()]))
  t.not(first.url.port, second.url.port)
  await first.plain.create('/api/v1/namespaces', { metadata: { name: 'mine' } })
  t.equal((await second.plain.send('GET', '/api/v1/namespaces/mine')).status, 404)
})
