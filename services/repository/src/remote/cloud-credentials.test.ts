import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import t, { type Test } from 'tap'
import { FETCH_BOUNDS } from '../fetch/fetch-options.ts'
import { parseRepositoryUri } from '../repository-uri.ts'
import { type Answer, answerStatus, startArtifactServer } from '../testing/artifact-server.ts'
import { AzureCredentials, readAzureAccount } from './as-credentials.ts'
import type { CloudIdentity } from './cloud-tokens.ts'
import { readCredentialEntry, textsOf } from './credential-file.ts'
import { GoogleCredentials } from './gs-credentials.ts'

type Env = Readonly<Record<string, string>>

async function prepare(t: Test, ...answers: readonly Answer[]) {
  const server = await startArtifactServer(...answers)
  t.teardown(() => server.close())
  const home = t.testdir()
  let nowMs = systemClock.epochMs()
  const clock = { epochMs: () => nowMs }
  const signal = new AbortController().signal
  const http = { bounds: FETCH_BOUNDS, credentials: {}, signal }
  const at = parseRepositoryUri('gs://bucket/models')
  if (at.kind !== 'gs') throw new Error('no gs')
  const open = (env: Env = {}) => {
    const base = { HOME: home, GCE_METADATA_HOST: new URL(server.origin).host }
    const credentials = new GoogleCredentials(at, {
      env: { ...base, ...env },
      clock,
      identity: scriptedIdentity,
    })
    return async () => (await credentials.read(http))()
  }
  const write = async (name: string, value: unknown): Promise<string> => {
    const path = join(home, name)
    await writeFile(path, typeof value === 'string' ? value : JSON.stringify(value))
    return path
  }
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { server, home, open, write, pass }
}

function token(
  value: string,
  o: { readonly lifetimeS?: number; readonly flavor?: string } = {},
): Answer {
  const headers = { 'metadata-flavor': o.flavor ?? 'Google' }
  const body = JSON.stringify({ access_token: value, expires_in: o.lifetimeS ?? 3600 })
  return (_, response) => void response.writeHead(200, headers).end(body)
}

/** Names the file, and how often its client was asked. */
const scriptedIdentity: CloudIdentity = {
  google: ({ name }) => {
    if (name === 'refused') return Promise.reject(new Error('no name'))
    let asked = 0
    return Promise.resolve(() => {
      if (name === 'unusable') return Promise.reject(new Error('no token'))
      if (name === 'down') return Promise.reject(new ServeError('ARTIFACT_UNAVAILABLE', 'down'))
      return Promise.resolve(`of ${String(name)}, ${(asked += 1)}`)
    })
  },
  azure: () => Promise.reject(new Error('no Azure')),
}

await t.test('a machine at Google has a token, which is kept until it ends', async (t) => {
  const { server, open, pass } = await prepare(t, token('one'), token('two'))
  const get = open()
  t.same(await Promise.all([get(), get()]), ['one', 'one'])
  t.equal(server.heard.length, 1)
  t.match(server.heard[0], {
    path: '/computeMetadata/v1/instance/service-accounts/default/token',
    headers: { 'metadata-flavor': 'Google' },
  })
  pass(3_500_000)
  t.equal(await get(), 'one')
  pass(50_000)
  t.equal(await get(), 'two')
})

await t.test(
  'without credentials requests have no token, and the machine is asked again',
  async (t) => {
    const { server, open, pass } = await prepare(
      t,
      answerStatus(404, { 'metadata-flavor': 'Google' }),
    )
    const get = open()
    t.equal(await get(), undefined)
    server.script(token('not of Google', { flavor: 'other' }))
    pass(61_000)
    t.equal(await get(), undefined)
    server.script((request) => request.socket.destroy())
    pass(61_000)
    t.equal(await get(), undefined)
    server.script(token('late'))
    t.equal(await get(), undefined, 'not at once')
    pass(61_000)
    t.equal(await get(), 'late')
    // It is at Google, and has trouble: that is no reason to read without a token.
    server.script(answerStatus(503, { 'metadata-flavor': 'Google' }))
    pass(4_000_000)
    await t.rejects(get(), {
      reason: 'ARTIFACT_UNAVAILABLE',
      message: /answered 503, asked for a token/,
    })
    server.script(token('again'))
    t.equal(await get(), 'again', 'a failure is not kept')
  },
)

// Executes docs/storage.md: {
await t.test('the file that docs/storage.md shows has the entries of an address', async (t) => {
  const root = join(import.meta.dirname, '..', '..', '..', '..')
  const page = await readFile(join(root, 'docs', 'storage.md'), 'utf8')
  const [, text = ''] = /^```json\n(.*?)^```$/ms.exec(page) ?? []
  const { write } = await prepare(t)
  const env = { TRITON_CLOUD_CREDENTIAL_PATH: await write('credentials.json', text) }
  const fieldsOf = async (kind: 's3' | 'as', uri: string): Promise<readonly string[]> =>
    Object.keys(textsOf(await readCredentialEntry({ kind, uri }, env)))
  const ofS3 = ['key_id', 'secret_key', 'session_token', 'region', 'profile']
  t.same(await fieldsOf('s3', 's3://BUCKET/models'), ofS3)
  t.same(await fieldsOf('s3', 's3://OTHER/models'), [])
  t.same(await fieldsOf('as', 'as://ACCOUNT/CONTAINER/a'), ['account_str', 'account_key'])
  const key = await readCredentialEntry({ kind: 'gs', uri: 'gs://any/models' }, env)
  t.equal(key, '/etc/gcloud/key.json')
})

await t.test('files count in the order of Triton', async (t) => {
  const { home, open, write } = await prepare(t)
  const named = async (name: string) => await write(`${name}.json`, { name })
  await write('application_default_credentials.json', { name: 'login' })
  const login = { CLOUDSDK_CONFIG: home }
  t.equal(await open(login)(), 'of login, 1')
  const key = { ...login, GOOGLE_APPLICATION_CREDENTIALS: await named('key') }
  t.equal(await open(key)(), 'of key, 1')
  const triton = await write('triton.json', {
    gs: { '': 'none', 'gs://bucket': await named('listed') },
  })
  t.equal(await open({ ...key, TRITON_CLOUD_CREDENTIAL_PATH: triton })(), 'of listed, 1')
  const others = await write('others.json', { gs: { 'gs://other': await named('other') } })
  const get = open({ ...key, TRITON_CLOUD_CREDENTIAL_PATH: others })
  t.equal(await get(), 'of key, 1')
  t.equal(await get(), 'of key, 2', 'of the same client, which keeps its token')
  await named('key')
  await write('key.json', { name: 'new' })
  t.equal(await get(), 'of new, 1', 'another file has another client')
})

await t.test('files that cannot be used are refused, without what they have', async (t) => {
  const { open, write } = await prepare(t, answerStatus(404))
  const refusals: readonly (readonly [unknown, RegExp])[] = [
    ['hidden', /which cannot be read: it is no JSON$/],
    [
      { name: 'refused' },
      /^GOOGLE_APPLICATION_CREDENTIALS names '.*key\.json', which cannot be used: no name$/,
    ],
    [
      { name: 'unusable' },
      /^GOOGLE_APPLICATION_CREDENTIALS names '.*', which cannot be used: no token$/,
    ],
  ]
  for (const [content, message] of refusals) {
    const env = { GOOGLE_APPLICATION_CREDENTIALS: await write('key.json', content) }
    const failure: unknown = await open(env)().catch((error: unknown) => error)
    t.match(failure, { reason: 'SETTING_INVALID', message })
    t.notMatch(String(failure), 'hidden')
  }
  const down = { GOOGLE_APPLICATION_CREDENTIALS: await write('down.json', { name: 'down' }) }
  await t.rejects(open(down)(), { reason: 'ARTIFACT_UNAVAILABLE', message: 'down' })
  await t.rejects(open({ GOOGLE_APPLICATION_CREDENTIALS: '/none' })(), {
    message: /^GOOGLE_APPLICATION_CREDENTIALS names '\/none', which cannot be read: ENOENT/,
  })
  const triton = await write('triton.json', { gs: { '': { path: 'x' } } })
  await t.rejects(open({ TRITON_CLOUD_CREDENTIAL_PATH: triton })(), { message: /that is no path/ })
  const nowhere = await write('nowhere.json', { gs: { '': '/none' } })
  await t.rejects(open({ TRITON_CLOUD_CREDENTIAL_PATH: nowhere })(), {
    message: /^the entry of TRITON_CLOUD_CREDENTIAL_PATH names '\/none', which cannot be read/,
  })
})

await t.test('a program without the libraries refuses what needs them', async (t) => {
  const { write } = await prepare(t)
  const GOOGLE_APPLICATION_CREDENTIALS = await write('key.json', {})
  const http = { bounds: FETCH_BOUNDS, credentials: {}, signal: new AbortController().signal }
  const clock = systemClock
  const gs = parseRepositoryUri('gs://bucket/models')
  const as = parseRepositoryUri('as://named/models')
  if (gs.kind !== 'gs' || as.kind !== 'as') throw new Error('no clouds')
  const message = /needs a library of the cloud, which `tutti serve` has/
  const none = { clock, identity: undefined }
  const google = new GoogleCredentials(gs, { ...none, env: { GOOGLE_APPLICATION_CREDENTIALS } })
  await t.rejects(google.read(http), { reason: 'SETTING_INVALID', message })
  const azure = new AzureCredentials(as, { ...none, env: { AZURE_STORAGE_AUTH_TYPE: 'default' } })
  await t.rejects(azure.read(http), { reason: 'SETTING_INVALID', message })
})

await t.test('the account of Azure is found as Triton finds it', async (t) => {
  const { write } = await prepare(t, answerStatus(404))
  const read = async (env: Env, uri = 'as://named/models/a') => {
    const at = parseRepositoryUri(uri)
    if (at.kind !== 'as') throw new Error(uri)
    const { account, key, endpoint, identity } = await readAzureAccount(at, env)
    return [account, key?.reveal(), endpoint?.href, ...(identity === undefined ? [] : [identity])]
  }
  const none = undefined
  const both = { AZURE_STORAGE_ACCOUNT: 'other', AZURE_STORAGE_KEY: 'a2V5' }
  t.same(await read({}), ['named', none, none])
  t.same(await read({ AZURE_STORAGE_KEY: 'a2V5' }), ['named', 'a2V5', none])
  t.same(await read(both), ['other', 'a2V5', none])
  const TRITON_CLOUD_CREDENTIAL_PATH = await write('triton.json', {
    as: {
      '': { account_str: 'all', account_key: 'YWxs' },
      'as://named/models': { account_str: '', account_key: 'bW9kZWxz' },
    },
  })
  const file = { ...both, TRITON_CLOUD_CREDENTIAL_PATH }
  t.same(await read(file), ['named', 'bW9kZWxz', none])
  t.same(await read(file, 'as://named/others'), ['all', 'YWxs', none])
  const pod = {
    AZURE_TENANT_ID: 't',
    AZURE_CLIENT_ID: 'c',
    AZURE_FEDERATED_TOKEN_FILE: '/token',
    AZURE_AUTHORITY_HOST: 'https://login.example/',
  }
  const ids = { tenantId: 't', clientId: 'c', authorityHost: 'https://login.example/' }
  const ofPod = { kind: 'workload', ...ids, tokenFile: '/token' }
  t.same(await read(pod), ['named', none, none, ofPod])
  t.same(await read({ ...pod, ...both }), ['other', 'a2V5', none], 'the key counts first')
  const type = { AZURE_STORAGE_AUTH_TYPE: 'default' }
  t.same(await read({ ...pod, ...both, ...type }), ['other', none, none, ofPod])
  t.match(await read({ ...pod, AZURE_CLIENT_SECRET: 's' }), [
    'named',
    none,
    none,
    { kind: 'secret' },
  ])
  const machine = { kind: 'managed', clientId: none }
  t.same(await read(type), ['named', none, none, machine])
  t.same(await read({ IDENTITY_ENDPOINT: 'http://x' }), ['named', none, none, machine])
  t.same(await read({ ...pod, AZURE_STORAGE_AUTH_TYPE: 'key' }), ['named', none, none])
  const endpoint = { AZURE_STORAGE_SERVICE_ENDPOINT: 'http://azurite:10000/dev' }
  t.same(await read(endpoint), ['named', none, 'http://azurite:10000/dev'])
  const wrong: readonly (readonly [Env, RegExp])[] = [
    [{ AZURE_STORAGE_ACCOUNT: 'a.evil/' }, /^AZURE_STORAGE_ACCOUNT is "a\.evil\/", want the name/],
    [{ AZURE_STORAGE_KEY: 'hidden!' }, /^AZURE_STORAGE_KEY is no key in base64$/],
    [
      {
        TRITON_CLOUD_CREDENTIAL_PATH: await write('wrong.json', {
          as: { '': { account_key: 'hidden!' } },
        }),
      },
      /^account_key of TRITON_CLOUD_CREDENTIAL_PATH is no key in base64$/,
    ],
    [{ AZURE_STORAGE_AUTH_TYPE: 'sas' }, /^AZURE_STORAGE_AUTH_TYPE is "sas", want key or default$/],
    [
      { AZURE_FEDERATED_TOKEN_FILE: '/t', AZURE_TENANT_ID: 'x' },
      /^AZURE_CLIENT_ID is absent, want it beside AZURE_FEDERATED_TOKEN_FILE$/,
    ],
    [
      { AZURE_CLIENT_SECRET: 'hidden' },
      /^AZURE_TENANT_ID is absent, want it beside AZURE_CLIENT_SECRET$/,
    ],
    [{ AZURE_STORAGE_SERVICE_ENDPOINT: 'azurite' }, /^AZURE_STORAGE_SERVICE_ENDPOINT is no http/],
  ]
  for (const [env, message] of wrong) {
    await t.rejects(read(env), { reason: 'SETTING_INVALID', message })
  }
})
