import { generateKeyPairSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { FETCH_BOUNDS } from '../fetch/fetch-options.ts'
import { parseRepositoryUri } from '../repository-uri.ts'
import { type Answer, answerStatus, startArtifactServer } from '../testing/artifact-server.ts'
import { readAzureAccount } from './as-credentials.ts'
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
    const credentials = new GoogleCredentials(at, { env: { ...base, ...env }, clock })
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

const isSigned = (text: string | undefined) => text?.split('.').length === 3

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
  const { server, home, open, write } = await prepare(t, token('of-a-user'))
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const user = {
    type: 'authorized_user',
    client_id: 'id',
    client_secret: 'hidden',
    refresh_token: 'hidden too',
    token_uri: `${server.origin}/token`,
  }
  const service = { type: 'service_account', client_email: 'a@b', private_key: privateKey }
  await write('application_default_credentials.json', user)
  const login = { CLOUDSDK_CONFIG: home }
  t.equal(await open(login)(), 'of-a-user')
  t.match(server.heard[0], { path: '/token', headers: { 'content-type': /urlencoded/ } })
  const named = { ...login, GOOGLE_APPLICATION_CREDENTIALS: await write('key.json', service) }
  t.ok(isSigned(await open(named)()))
  const userPath = await write('user.json', user)
  const triton = await write('triton.json', { gs: { '': 'none', 'gs://bucket': userPath } })
  t.equal(await open({ ...named, TRITON_CLOUD_CREDENTIAL_PATH: triton })(), 'of-a-user')
  const others = await write('others.json', { gs: { 'gs://other': userPath } })
  t.ok(isSigned(await open({ ...named, TRITON_CLOUD_CREDENTIAL_PATH: others })()))
  server.script(answerStatus(400))
  await t.rejects(open(login)(), { reason: 'ARTIFACT_DENIED', message: /\/token' answered 400/ })
})

await t.test('files that cannot be used are refused, without what they have', async (t) => {
  const { open, write } = await prepare(t, answerStatus(404))
  const service = { type: 'service_account', client_email: 'a@b', private_key: 'hidden' }
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ['hidden', /cannot be read: it is no JSON$/],
    [{ ...service, client_email: '' }, /which has no client_email$/],
    [service, /whose private_key cannot be read$/],
    [{ type: 'authorized_user', client_id: 'x' }, /which has no client_secret$/],
    [
      { type: 'external_account' },
      /which has the type "external_account", want service_account or authorized_user$/,
    ],
  ]
  for (const [content, message] of cases) {
    const path = await write('key.json', content)
    const failure: unknown = await open({ GOOGLE_APPLICATION_CREDENTIALS: path })().catch(
      (error: unknown) => error,
    )
    t.match(failure, { reason: 'SETTING_INVALID', message })
    t.notMatch(String(failure), 'hidden')
  }
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

await t.test('the account of Azure is found as Triton finds it', async (t) => {
  const { write } = await prepare(t, answerStatus(404))
  const read = async (env: Env, uri = 'as://named/models/a') => {
    const at = parseRepositoryUri(uri)
    if (at.kind !== 'as') throw new Error(uri)
    const { account, key, endpoint } = await readAzureAccount(at, env)
    return [account, key?.reveal(), endpoint?.href]
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
    [{ AZURE_STORAGE_AUTH_TYPE: 'default' }, /^AZURE_STORAGE_AUTH_TYPE is "default", want key or/],
    [{ AZURE_STORAGE_SERVICE_ENDPOINT: 'azurite' }, /^AZURE_STORAGE_SERVICE_ENDPOINT is no http/],
  ]
  for (const [env, message] of wrong) {
    await t.rejects(read(env), { reason: 'SETTING_INVALID', message })
  }
})
