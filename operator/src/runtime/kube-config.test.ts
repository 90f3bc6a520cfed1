import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { kubeConfigAccess } from './kube-config.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

function kubeconfig(o: {
  readonly cluster?: object
  readonly user?: object
  readonly context?: string
}) {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443', ...o.cluster } }],
    users: [{ name: 'u', user: o.user ?? {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
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

await t.test('a token file is read again after a while, and when the server refuses', async (t) => {
  const dir = t.testdir({ token: 'one' })
  const token = join(dir, 'token')
  const file = join(dir, 'config')
  await writeFile(file, kubeconfig({ user: { 'token-file': token } }))
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
    ['{', /cannot be read as a kubeconfig/],
  ] as const
  for (const [text, message] of cases) {
    await writeFile(file, text)
    t.throws(() => kubeConfigAccess({ file }), message)
  }
  t.throws(() => kubeConfigAccess({ file: `${file}.none` }), /cannot be read/)
})
