import { chmod, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { stringify } from 'yaml'
import { openKubeConfig } from './open-kubeconfig.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const kubeConfigAccess = ({ file, ...more }: { file: string; clock?: Clock }) =>
  openKubeConfig({ files: [file], ...more }).access

function kubeconfig(o: {
  readonly cluster?: object
  readonly user?: object
  readonly context?: string
  /** Name of the context's user. */
  readonly of?: string
}) {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443', ...o.cluster } }],
    users: [{ name: 'u', user: o.user ?? {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: o.of ?? 'u' } }],
    'current-context': o.context ?? 'x',
  })
}

await t.test('what a kubeconfig says of server and user', async (t) => {
  const file = join(t.testdir({}), 'config')
  const cases = [
    [{ user: { token: 'abc' } }, { authorization: 'Bearer abc' }],
    [{ user: { username: 'me', password: 'pw' } }, { authorization: `Basic ${base64('me:pw')}` }],
    [
      {
        cluster: { 'certificate-authority-data': base64('CA') },
        user: {
          'client-certificate-data': base64('CERT'),
          'client-key-data': base64('KEY'),
        },
      },
      { ca: 'CA', cert: 'CERT', key: 'KEY' },
    ],
    [{}, {}],
  ] as const
  for (const [given, wanted] of cases) {
    await writeFile(file, kubeconfig(given))
    const access = kubeConfigAccess({ file })
    t.equal(access.server.href, 'https://127.0.0.1:6443/')
    t.same(await access.credentials(), wanted)
  }
  const cluster = { 'insecure-skip-tls-verify': true, 'tls-server-name': 'api' }
  await writeFile(file, kubeconfig({ cluster }))
  t.match(kubeConfigAccess({ file }), { serverName: 'api', isServerUnverified: true })
})

await t.test('a server that is no address is refused', async (t) => {
  const file = join(t.testdir({}), 'config')
  for (const server of ['localhost:8080', 'not an address', 'ftp://x']) {
    await writeFile(file, kubeconfig({ cluster: { server } }))
    const message = `${file}: cluster "c" has the server "${server}", want https://HOST:PORT`
    t.throws(() => kubeConfigAccess({ file }), { reason: 'SETTING_INVALID', message })
  }
})

await t.test('a token file is read again after a while, and when the server refuses', async (t) => {
  const dir = t.testdir({ token: 'one' })
  const token = join(dir, 'token')
  const file = join(dir, 'config')
  await writeFile(file, kubeconfig({ user: { tokenFile: token } }))
  const clock = createManualClock()
  const access = kubeConfigAccess({ file, clock })
  const header = async () => (await access.credentials()).authorization
  t.equal(await header(), 'Bearer one')
  await writeFile(token, 'two')
  t.equal(await header(), 'Bearer one')
  clock.advance(60_000)
  t.equal(await header(), 'Bearer two')
  await writeFile(token, 'three')
  access.refresh()
  t.equal(await header(), 'Bearer three')
  await rm(file)
  access.refresh()
  await t.rejects(header(), /cannot be read/, 'the caller gets the error')
  await writeFile(file, kubeconfig({ user: { token: 'four' } }))
  t.equal(await header(), 'Bearer four')
})

await t.test('an exec plugin is asked, and asked again when its token was refused', async (t) => {
  const dir = t.testdir({ count: '' })
  const file = join(dir, 'config')
  const script = `
    const fs = require('node:fs')
    fs.appendFileSync(${JSON.stringify(join(dir, 'count'))}, 'x')
    const token = 't' + fs.readFileSync(${JSON.stringify(join(dir, 'count'))}, 'utf8').length
    console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token } }))`
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: ['-e', script],
    interactiveMode: 'Never',
  }
  await writeFile(file, kubeconfig({ user: { exec } }))
  const access = kubeConfigAccess({ file })
  t.equal((await access.credentials()).authorization, 'Bearer t1')
  t.equal((await access.credentials()).authorization, 'Bearer t1')
  access.refresh()
  t.equal((await access.credentials()).authorization, 'Bearer t2')
})

await t.test('what cannot be used is refused with the reason', async (t) => {
  const file = join(t.testdir({}), 'config')
  const cases = [
    [kubeconfig({ context: 'none' }), /current-context is "none", want a context with a cluster/],
    [kubeconfig({ cluster: { 'proxy-url': 'http://p' } }), /cluster "c" has a proxy-url/],
    [kubeconfig({ user: { as: 'other' } }), /has "as", which is not offered/],
    [kubeconfig({ of: 'other' }), /context "x" has the user "other", which is missing/],
    ['{', /cannot be read as a kubeconfig/],
    ['', /cannot be read as a kubeconfig: it has no clusters, contexts and users/],
  ] as const
  for (const [text, message] of cases) {
    await writeFile(file, text)
    t.throws(() => kubeConfigAccess({ file }), message)
  }
  t.throws(() => kubeConfigAccess({ file: `${file}.none` }), /cannot be read/)
})

/** A kubeconfig with one context, and a cluster and a user of its name. */
const named = (o: { name: string; server: string; user: object; namespace?: string }) => ({
  clusters: [{ name: o.name, cluster: { server: o.server, 'certificate-authority': 'ca.pem' } }],
  users: [{ name: o.name, user: o.user }],
  contexts: [
    {
      name: o.name,
      context: {
        cluster: o.name,
        user: o.name,
        ...(o.namespace !== undefined && { namespace: o.namespace }),
      },
    },
  ],
})

await t.test('several files are merged, and a context is chosen by name', async (t) => {
  const blue = named({ name: 'blue', server: 'https://b', user: { token: 'b' }, namespace: 'sea' })
  const red = named({ name: 'red', server: 'https://r', user: { tokenFile: 'token' } })
  const hidden = named({ name: 'red', server: 'https://other', user: {} })
  const dir = t.testdir({
    // As kubectl writes what is empty.
    none: stringify({ 'current-context': '', clusters: null, users: null, contexts: null }),
    first: { config: stringify({ ...red, 'current-context': 'red' }), token: 'r', 'ca.pem': 'CA' },
    second: stringify({
      ...blue,
      contexts: [...blue.contexts, ...hidden.contexts],
      clusters: [...blue.clusters, ...hidden.clusters],
      'current-context': 'blue',
    }),
    'ca.pem': 'other CA',
  })
  const files = ['missing', 'none', 'first/config', 'second'].map((file) => join(dir, file))
  const current = openKubeConfig({ files })
  t.match(current, {
    context: 'red',
    namespace: undefined,
    access: { server: new URL('https://r') },
  })
  t.match(await current.access.credentials(), { authorization: 'Bearer r', ca: 'CA' })
  const chosen = openKubeConfig({ files, context: 'blue' })
  t.match(chosen, { context: 'blue', namespace: 'sea' })
  t.match(await chosen.access.credentials(), { authorization: 'Bearer b', ca: 'other CA' })
  t.throws(() => openKubeConfig({ files, context: 'x' }), /: context is "x", want/)
})

/** A user with a plugin that runs a script of Node. */
const pluginUser = (script: string, more = {}) => ({
  exec: {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: ['-e', script],
    interactiveMode: 'Never',
    ...more,
  },
})

await t.test(
  'a plugin gets its environment, and is asked again when its time is over',
  async (t) => {
    const dir = t.testdir({
      plugin: `#!${process.execPath}
      const { apiVersion } = JSON.parse(process.env.KUBERNETES_EXEC_INFO)
      const expirationTimestamp = new Date(Date.now() - 1).toISOString()
      const clientCertificateData = process.env.MINE + apiVersion
      console.log(JSON.stringify({ status: { clientCertificateData, clientKeyData: 'K' + process.pid, expirationTimestamp } }))`,
    })
    await chmod(join(dir, 'plugin'), 0o755)
    const env = [{ name: 'MINE', value: 'a/' }]
    const file = join(dir, 'config')
    await writeFile(
      file,
      kubeconfig({ user: pluginUser('', { command: './plugin', args: [], env }) }),
    )
    const clock = createManualClock()
    const { access } = openKubeConfig({ files: [file], clock })
    const first = await access.credentials()
    t.match(first, { cert: 'a/client.authentication.k8s.io/v1', key: /^K\d/ })
    t.same(await access.credentials(), first)
    clock.advance(60_000)
    t.not((await access.credentials()).key, first.key)
  },
)

await t.test('requests at once ask a plugin once', async (t) => {
  const file = join(t.testdir({}), 'config')
  const script = "console.log(JSON.stringify({ status: { token: 't' + process.pid } }))"
  await writeFile(file, kubeconfig({ user: pluginUser(script) }))
  const { access } = openKubeConfig({ files: [file] })
  const all = await Promise.all([1, 2, 3].map(() => access.credentials()))
  t.equal(new Set(all.map(({ authorization }) => authorization)).size, 1)
})

await t.test('a plugin that fails or hangs fails the request', async (t) => {
  const file = join(t.testdir({}), 'config')
  await writeFile(
    file,
    kubeconfig({ user: pluginUser("console.error('log in'); process.exit(3)") }),
  )
  await t.rejects(openKubeConfig({ files: [file] }).access.credentials(), /log in/)
  await writeFile(file, kubeconfig({ user: pluginUser("console.log('no JSON')") }))
  await t.rejects(openKubeConfig({ files: [file] }).access.credentials(), /the plugin .* failed: /)
  await writeFile(file, kubeconfig({ user: pluginUser('setTimeout(() => {}, 3000)') }))
  const { access } = openKubeConfig({ files: [file], pluginMs: 50 })
  await t.rejects(access.credentials(), /the plugin .* failed: no answer within 0.05 s/)
})
