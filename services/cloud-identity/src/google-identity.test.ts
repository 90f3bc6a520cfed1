import { generateKeyPairSync, verify } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { openGoogle } from './google-identity.ts'
import { ScriptedServer } from './testing/scripted-server.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})
const SCOPE = 'https://www.googleapis.com/auth/devstorage.read_only'
const SERVICE = { type: 'service_account', client_email: 'a@b', private_key: privateKey }
const USER = {
  type: 'authorized_user',
  client_id: 'id',
  client_secret: 'hidden',
  refresh_token: 'hidden-too',
}
const given = (value: string, seconds = 3600) => ({
  json: { access_token: value, expires_in: seconds, token_type: 'Bearer' },
})
const nobody = new ScriptedServer({})
const { cache } = createRequire(import.meta.url)
const isLoaded = (): boolean => Object.keys(cache).some((path) => path.includes('google-auth'))

await t.test('the library is loaded for the first file', async (t) => {
  t.notOk(isLoaded())
  await openGoogle(SERVICE)
  t.ok(isLoaded())
})

await t.test('the key of an account signs its token itself', async (t) => {
  const source = await openGoogle(SERVICE)
  const token = await source(nobody.send)
  const [head = '', body = '', signature = ''] = token.split('.')
  const signed = Buffer.from(`${head}.${body}`)
  t.ok(verify('RSA-SHA256', signed, publicKey, Buffer.from(signature, 'base64url')))
  t.match(JSON.parse(Buffer.from(body, 'base64url').toString()), {
    iss: 'a@b',
    sub: 'a@b',
    scope: SCOPE,
  })
  t.equal(await source(nobody.send), token, 'it is kept')
})

await t.test(
  'a user has a token for a refresh token, of the server that the file names',
  async (t) => {
    const server = new ScriptedServer({
      'https://oauth2.googleapis.com/token': given('of-google'),
      'https://other.example/token': given('of-other', 10),
    })
    t.equal(await (await openGoogle(USER))(server.send), 'of-google')
    const other = await openGoogle({ ...USER, token_uri: 'https://other.example/token' })
    t.equal(await other(server.send), 'of-other')
    await other(server.send)
    const forms = server.forms('https://other.example')
    t.equal(forms.length, 2, 'a token that ends soon is not kept')
    t.match(forms[0], { grant_type: 'refresh_token', refresh_token: 'hidden-too' })
  },
)

const FEDERATED = {
  type: 'external_account',
  audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  token_url: 'https://sts.googleapis.com/v1/token',
}

await t.test('a cluster elsewhere is trusted by Google, and may act as an account', async (t) => {
  const file = join(t.testdir({}), 'token')
  await writeFile(file, 'of-the-cluster')
  const impersonated = 'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b'
  const server = new ScriptedServer({
    'https://sts.googleapis.com/v1/token': {
      json: { ...given('federated').json, issued_token_type: 'x' },
    },
    [impersonated]: {
      json: {
        accessToken: 'of-the-account',
        expireTime: new Date(Date.now() + 3.6e6).toISOString(),
      },
    },
  })
  const key = { ...FEDERATED, credential_source: { file } }
  t.equal(await (await openGoogle(key))(server.send), 'federated')
  t.match(server.forms('https://sts')[0], { subject_token: 'of-the-cluster', scope: SCOPE })
  const account = `${impersonated}:generateAccessToken`
  const acting = await openGoogle({ ...key, service_account_impersonation_url: account })
  t.equal(await acting(server.send), 'of-the-account')
  t.match(server.heard.at(-1), { headers: { authorization: 'Bearer federated' } })
})

await t.test('files that cannot be used are refused, without what they have', async (t) => {
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ ...SERVICE, client_email: undefined }, /client_email/],
    [{ ...SERVICE, private_key: undefined }, /private_key/],
    [{ ...SERVICE, private_key: 'hidden' }, /DECODER|PEM|asymmetric key/i],
    [{ ...USER, client_secret: undefined }, /client_secret/],
    [
      { type: 'x' },
      /^it has the type "x", want service_account, authorized_user or external_account$/,
    ],
    [{}, /^it has the type none, want/],
    [{ ...FEDERATED, credential_source: { file: '/none' } }, /\/none/],
  ]
  for (const [key, message] of cases) {
    const failure: unknown = await openGoogle({ ...key })
      .then((source) => source(nobody.send))
      .catch((error: unknown) => error)
    t.match(failure, { message }, JSON.stringify(key).slice(0, 80))
    t.notMatch(String(failure), 'hidden')
    t.notOk(failure instanceof ServeError)
  }
})

await t.test('a refusal says what the server says', async (t) => {
  const source = await openGoogle(USER)
  const at = 'https://oauth2.googleapis.com/token'
  const expired = { error: 'invalid_grant', error_description: 'Token has been revoked.' }
  await t.rejects(source(new ScriptedServer({ [at]: { status: 400, json: expired } }).send), {
    reason: 'ARTIFACT_DENIED',
    message: `'${at}' answered 400, asked for a token of Google: Token has been revoked.`,
  })
  await t.rejects(source(new ScriptedServer({ [at]: { status: 500, json: '<html>' } }).send), {
    reason: 'ARTIFACT_UNAVAILABLE',
    message: /answered 500, asked for a token of Google$/,
  })
  await t.rejects(source(new ScriptedServer({ [at]: { json: {} } }).send), {
    message: /answered 200, asked for a token of Google without a token$/,
  })
  const lost = new ServeError('ARTIFACT_UNAVAILABLE', 'lost')
  await t.rejects(source(new ScriptedServer({ [at]: lost }).send), lost)
  t.equal(await source(new ScriptedServer({ [at]: given('later') }).send), 'later')
})
