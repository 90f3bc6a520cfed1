import { generateKeyPairSync, verify } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SecretText, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { readCredentials } from '../fetch/credentials.ts'
import { fetchArtifact } from '../fetch/fetch-artifact.ts'
import { type Answer, answerStatus, startArtifactServer } from '../testing/artifact-server.ts'
import { cloudBuckets } from './cloud-buckets.ts'
import { podCloudIdentity } from './pod-cloud-identity.ts'

const CONFIG = 'backend: "b"'
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const KEY = {
  type: 'service_account',
  client_email: 'reader@project.iam.gserviceaccount.com',
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  private_key_id: 'id-of-key',
}

const parse = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())

/** A bucket of Google with one file. */
const google: Answer = ({ url = '' }, response) => {
  if (url.includes('alt=media')) {
    return response.writeHead(200, { 'x-goog-generation': '7' }).end(CONFIG)
  }
  const item = { name: 'yolo/config.pbtxt', size: String(CONFIG.length), generation: '7' }
  return response.end(JSON.stringify({ items: [item] }))
}
/** A container of Azure with one file. */
const azure: Answer = ({ url = '' }, response) => {
  if (!url.includes('comp=list')) return response.writeHead(200, { etag: '"0x7"' }).end(CONFIG)
  const properties = `<Content-Length>${CONFIG.length}</Content-Length><Etag>0x7</Etag>`
  const blob = `<Blob><Name>yolo/config.pbtxt</Name><Properties>${properties}</Properties></Blob>`
  return response.end(
    `<?xml version="1.0"?><EnumerationResults><Blobs>${blob}</Blobs><NextMarker/></EnumerationResults>`,
  )
}

async function prepare(t: Test, answer: Answer, uri: string) {
  const server = await startArtifactServer(answer)
  const tokens = await startArtifactServer((_, response) =>
    response.end(JSON.stringify({ access_token: 'for-an-hour', expires_in: 3600 })),
  )
  t.teardown(async () => {
    await server.close()
    await tokens.close()
  })
  const folder = t.testdir({ secret: {} })
  let fetches = 0
  const fetched = async (
    secret: Readonly<Record<string, string>>,
    env: Readonly<Record<string, string>> = {},
  ) => {
    const directory = join(folder, 'secret')
    for (const [key, text] of Object.entries(secret)) await writeFile(join(directory, key), text)
    const to = join(folder, `pod-${(fetches += 1)}`, 'model')
    await fetchArtifact({
      uri,
      to,
      credentials: await readCredentials(directory),
      openBucket: cloudBuckets({
        env: { HOME: folder, GCE_METADATA_HOST: new URL(server.origin).host, ...env },
        identity: podCloudIdentity(),
      }),
      bounds: { attempts: 1 },
      signal: new AbortController().signal,
    })
    return await readFile(join(to, 'config.pbtxt'), 'utf8')
  }
  return { server, tokens, folder, fetched }
}

await t.test('a key of Google in a Secret signs its tokens itself', async (t) => {
  const { server, fetched } = await prepare(t, google, 'gs://bucket/yolo')
  const secret = {
    GOOGLE_APPLICATION_CREDENTIALS: JSON.stringify(KEY),
    CLOUD_STORAGE_EMULATOR_ENDPOINT: server.origin,
  }
  t.equal(await fetched(secret), CONFIG)
  const tokens = new Set(server.heard.map(({ headers }) => headers.authorization))
  t.equal(tokens.size, 1, 'one for all requests')
  const [token = ''] = tokens
  const [head = '', claims = '', signature = ''] = token.replace('Bearer ', '').split('.')
  t.same(parse(head), { alg: 'RS256', typ: 'JWT', kid: 'id-of-key' })
  t.match(parse(claims), { iss: KEY.client_email, sub: KEY.client_email, scope: /read_only$/ })
  const bytes = Buffer.from(signature, 'base64url')
  t.ok(verify('sha256', Buffer.from(`${head}.${claims}`), publicKey, bytes))
  for (const [key, message] of [
    [
      { ...KEY, type: 'authorized_user' },
      /has the type "authorized_user", want a key of a service/,
    ],
    [{ ...KEY, private_key: 'hidden' }, /its private_key cannot be read$/],
  ] as const) {
    const wrong = { ...secret, GOOGLE_APPLICATION_CREDENTIALS: JSON.stringify(key) }
    const error: unknown = await fetched(wrong).catch((failure: unknown) => failure)
    t.match(error, { reason: 'SETTING_INVALID', message })
    t.notMatch(String(error), 'hidden')
  }
})

await t.test('on GKE the metadata server gives the tokens of the pod', async (t) => {
  const { server, fetched } = await prepare(
    t,
    (request, response) => {
      if (request.url?.startsWith('/computeMetadata') !== true) return google(request, response)
      const token = JSON.stringify({ access_token: 'of-the-pod', expires_in: 3600 })
      return response.writeHead(200, { 'metadata-flavor': 'Google' }).end(token)
    },
    'gs://bucket/yolo',
  )
  t.equal(await fetched({ CLOUD_STORAGE_EMULATOR_ENDPOINT: server.origin }), CONFIG)
  t.equal(server.heard.at(-1)?.headers.authorization, 'Bearer of-the-pod')
})

await t.test('a key of Azure signs, and secrets and pods get tokens', async (t) => {
  const { server, tokens, folder, fetched } = await prepare(t, azure, 'as://account/models/yolo')
  const at = { AZURE_STORAGE_SERVICE_ENDPOINT: `${server.origin}/account` }
  const ids = { AZURE_TENANT_ID: 'tenant', AZURE_CLIENT_ID: 'client' }
  const authority = { AZURE_AUTHORITY_HOST: tokens.origin }
  await writeFile(join(folder, 'token'), 'of the cluster\n')
  const file = { AZURE_FEDERATED_TOKEN_FILE: join(folder, 'token') }
  t.equal(await fetched(at, { ...authority, ...ids, ...file }), CONFIG)
  t.equal(server.heard.at(-1)?.headers.authorization, 'Bearer for-an-hour')
  t.equal(tokens.heard.length, 1)
  t.equal(tokens.heard[0]?.path, '/tenant/oauth2/v2.0/token')
  tokens.script((_, response) =>
    response
      .writeHead(401)
      .end(JSON.stringify({ error_description: 'AADSTS7000215: no.\r\nTrace' })),
  )
  const secret = { ...at, ...ids, AZURE_CLIENT_SECRET: 'hidden' }
  await t.rejects(fetched(secret, { ...authority, ...file }), {
    reason: 'ARTIFACT_DENIED',
    message: /answered 401, asked for a token of Azure: AADSTS7000215: no\.$/,
  })
  tokens.script(answerStatus(503))
  await t.rejects(fetched(secret, authority), { reason: 'ARTIFACT_UNAVAILABLE', message: /503/ })
  await t.rejects(fetched({ AZURE_CLIENT_SECRET: '' }, { AZURE_STORAGE_AUTH_TYPE: 'default' }), {
    reason: 'SETTING_INVALID',
    message: /identity of a machine is every pod's, want workload identity or a key$/,
  })
  const key = Buffer.from('hidden').toString('base64')
  t.equal(await fetched({ ...at, AZURE_STORAGE_KEY: key }), CONFIG)
  t.match(server.heard.at(-1)?.headers.authorization, /^SharedKey account:/)
})

await t.test('a token is renewed before it ends', async (t) => {
  let nowMs = systemClock.epochMs()
  const identity = podCloudIdentity({ epochMs: () => nowMs })
  const source = await identity.azure({
    kind: 'secret',
    tenantId: 't',
    clientId: 'c',
    secret: new SecretText('s'),
    authorityHost: undefined,
  })
  const asked: string[] = []
  const send: Parameters<typeof source>[0] = async ({ url }) => {
    asked.push(url.href)
    const text = JSON.stringify({ access_token: `t${asked.length}`, expires_in: 3600 })
    return await Promise.resolve({ status: 200, headers: {}, text })
  }
  t.same(await Promise.all([source(send), source(send)]), ['t1', 't1'])
  t.same(asked, ['https://login.microsoftonline.com/t/oauth2/v2.0/token'])
  nowMs += 3_200_000
  t.equal(await source(send), 't1')
  nowMs += 200_000
  t.equal(await source(send), 't2')
})
