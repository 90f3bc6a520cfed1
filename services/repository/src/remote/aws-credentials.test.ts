import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { FETCH_BOUNDS } from '../fetch/fetch-options.ts'
import { parseRepositoryUri } from '../repository-uri.ts'
import { scanRepositories } from '../scan.ts'
import { type Answer, startArtifactServer } from '../testing/artifact-server.ts'
import { answerText } from '../testing/cloud-buckets.ts'
import { readAwsCredentials } from './aws-credentials.ts'
import { AwsRoles } from './aws-roles.ts'

await t.test('addresses are read in the forms of Triton', async (t) => {
  const cases: readonly (readonly [string, string, string, string | undefined])[] = [
    ['s3://bucket', 'bucket', '', undefined],
    ['s3://bucket/a//b/', 'bucket', 'a/b/', undefined],
    ['s3://host.x:9000/bucket/a', 'bucket', 'a/', 'http://host.x:9000/'],
    ['s3://http://host:9000/bucket/a', 'bucket', 'a/', 'http://host:9000/'],
    ['s3://https://host:9000/bucket', 'bucket', '', 'https://host:9000/'],
    ['s3://https://host/bucket', 'bucket', '', 'https://host/'],
  ]
  for (const [uri, bucket, prefix, endpoint] of cases) {
    const found = parseRepositoryUri(uri)
    const { href } = (found.kind === 's3' ? found.endpoint : undefined) ?? {}
    t.same([found.bucket, found.prefix, href], [bucket, prefix, endpoint], uri)
  }
  for (const uri of ['s3://', 's3:///a', 's3://B/x', 's3://host:1/', 's3://https://u:p@h/bucket']) {
    t.throws(() => parseRepositoryUri(uri), { reason: 'FLAG_INVALID', message: /want a folder or/ })
  }
  t.match(parseRepositoryUri('gs://my_bucket.example/a/b'), {
    kind: 'gs',
    bucket: 'my_bucket.example',
    prefix: 'a/b/',
  })
  const azure = { kind: 'as', account: 'name', bucket: 'models', prefix: 'a/' }
  t.match(parseRepositoryUri('as://name/models/a'), azure)
  t.match(parseRepositoryUri('as://name.blob.core.windows.net/models//a/'), azure)
  const wrong: readonly (readonly [string, string])[] = [
    ['gs://', 'gs://BUCKET/PREFIX'],
    ['gs://B/x', 'gs://BUCKET/PREFIX'],
    ['as://name', 'as://ACCOUNT/CONTAINER/PREFIX without a query'],
    ['as://name/B/x', 'as://ACCOUNT/CONTAINER/PREFIX without a query'],
    ['as://name/models/a?...', 'as://ACCOUNT/CONTAINER/PREFIX without a query'],
  ]
  for (const [uri, want] of wrong) {
    const message = `--model-repository: "${uri}": want a folder or ${want}`
    t.throws(() => parseRepositoryUri(uri.replace('...', 'sig=hidden')), { message })
  }
  await t.rejects(scanRepositories(['s3://bucket/a']), {
    message:
      "model repository 's3://bucket/a' cannot be read: only tutti serve and tutti-step read buckets",
  })
})

await t.test('credentials are found as Triton finds them', async (t) => {
  const home = t.testdir({
    '.aws': {
      credentials:
        '[default]\naws_access_key_id = D\naws_secret_access_key = ds\n[p]\naws_access_key_id=P\naws_secret_access_key=ps\naws_session_token=pt\n',
      config: '[default]\nregion = eu-west-1\n[profile p]\nregion = eu-west-2\n',
    },
    'triton.json': JSON.stringify({
      s3: {
        '': { key_id: 'T', secret_key: 'ts', region: 'eu-north-1' },
        's3://bucket/deep': { profile: 'p' },
      },
    }),
    'bad.json': '{',
  })
  const keys = { AWS_ACCESS_KEY_ID: 'E', AWS_SECRET_ACCESS_KEY: 'es' }
  const triton = { TRITON_CLOUD_CREDENTIAL_PATH: join(home, 'triton.json') }
  const read = async (env: Readonly<Record<string, string>>, uri = 's3://bucket/x') => {
    const at = parseRepositoryUri(uri)
    if (at.kind !== 's3') throw new Error(uri)
    const found = await readAwsCredentials(at, { HOME: home, ...env })
    const { aws, awsRegion, awsEndpoint } = found
    const secrets = [aws?.secretAccessKey.reveal(), aws?.sessionToken?.reveal()]
    return [aws?.accessKeyId, ...secrets, awsRegion, awsEndpoint?.href]
  }
  const none = undefined
  t.same(await read(keys), ['E', 'es', none, 'eu-west-1', none])
  t.same(await read({ ...keys, AWS_SESSION_TOKEN: 'et', AWS_DEFAULT_REGION: 'r' }), [
    'E',
    'es',
    'et',
    'r',
    none,
  ])
  t.same(await read({}), ['D', 'ds', none, 'eu-west-1', none])
  t.same(await read({ AWS_PROFILE: 'p' }), ['P', 'ps', 'pt', 'eu-west-2', none])
  t.same(await read({ HOME: '/none' }), [none, none, none, none, none])
  t.same(await read({ ...keys, ...triton }), ['T', 'ts', none, 'eu-north-1', none])
  t.same(await read({ ...keys, ...triton }, 's3://bucket/deep/er'), [
    'P',
    'ps',
    'pt',
    'eu-west-2',
    none,
  ])
  t.match(await read({ ...keys, AWS_ENDPOINT_URL: 'http://minio:9000' }), [
    /E/,
    /es/,
    none,
    /./,
    'http://minio:9000/',
  ])
  t.match(await read({ ...keys, AWS_ENDPOINT_URL: 'http://x' }, 's3://h:1/bucket'), [
    /E/,
    /es/,
    none,
    /./,
    'http://h:1/',
  ])
  const wrong: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [
      { TRITON_CLOUD_CREDENTIAL_PATH: join(home, 'bad.json') },
      /bad.json', which cannot be read: it is no JSON/,
    ],
    [{ TRITON_CLOUD_CREDENTIAL_PATH: join(home, 'none') }, /none', which cannot be read/],
    [{ HOME: '/none', AWS_ACCESS_KEY_ID: 'x' }, /AWS_SECRET_ACCESS_KEY is missing/],
    [{ ...keys, AWS_ENDPOINT_URL: 'minio:9000' }, /AWS_ENDPOINT_URL is no http/],
  ]
  for (const [env, message] of wrong) {
    await t.rejects(read(env), { reason: 'SETTING_INVALID', message })
  }
})

const EXPIRATION = new Date(systemClock.epochMs() + 3_600_000).toISOString()
const KEYS = { AccessKeyId: 'AK', SecretAccessKey: 'hidden', Token: 'T', Expiration: EXPIRATION }
const answerKeys = answerText(JSON.stringify(KEYS))

async function prepareRoles(t: Test, ...answers: readonly Answer[]) {
  const server = await startArtifactServer(...answers)
  t.teardown(() => server.close())
  let nowMs = systemClock.epochMs()
  const http = { bounds: FETCH_BOUNDS, credentials: {}, signal: new AbortController().signal }
  const open = (env: Readonly<Record<string, string>>, isAws = true) => {
    const roles = new AwsRoles({ env, clock: { epochMs: () => nowMs } })
    return roles.keys(http, { region: 'eu-west-1', isAws })
  }
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { server, open, pass }
}

await t.test('a pod has the keys of its web identity, until they end', async (t) => {
  const bodies: string[] = []
  const credentials = `<AccessKeyId>AK</AccessKeyId><SecretAccessKey>hidden</SecretAccessKey><SessionToken>T</SessionToken><Expiration>${EXPIRATION}</Expiration>`
  const { server, open, pass } = await prepareRoles(t, async (request, response) => {
    bodies.push(await text(request))
    response.end(`<R><Credentials>${credentials}</Credentials></R>`)
  })
  const folder = t.testdir({ token: 'jwt\n' })
  const env = {
    AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, 'token'),
    AWS_ROLE_ARN: 'arn:aws:iam::1:role/reader',
    AWS_ENDPOINT_URL_STS: server.origin,
  }
  const keys = open(env)
  const [one, two] = await Promise.all([keys(), keys()])
  t.equal(one, two)
  t.same(
    [one?.accessKeyId, one?.secretAccessKey.reveal(), one?.sessionToken?.reveal()],
    ['AK', 'hidden', 'T'],
  )
  t.same(Object.fromEntries(new URLSearchParams(bodies[0])), {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: 'arn:aws:iam::1:role/reader',
    RoleSessionName: 'tutti',
    WebIdentityToken: 'jwt',
  })
  pass(3_200_000)
  await keys()
  t.equal(bodies.length, 1)
  pass(200_000)
  await keys()
  t.equal(bodies.length, 2, 'before they end')
  server.script(
    answerText('<E><Code>InvalidIdentityToken</Code><Message>No provider</Message></E>', 400),
  )
  await t.rejects(keys(), {
    reason: 'ARTIFACT_DENIED',
    message: /400, InvalidIdentityToken: No provider$/,
  })
  server.script(answerText('', 503))
  await t.rejects(keys(), { reason: 'ARTIFACT_UNAVAILABLE', message: /answered 503$/ })
  await t.rejects(open({ ...env, AWS_ROLE_ARN: '' })(), { message: /^AWS_ROLE_ARN is missing/ })
})

await t.test('a container has the keys of its address', async (t) => {
  const { server, open } = await prepareRoles(t, answerKeys)
  const folder = t.testdir({ token: 'pod token\n' })
  const uri = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.origin}/v1/credentials` }
  t.match(await open({ ...uri, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'x' }, false)(), {
    accessKeyId: 'AK',
  })
  await open({ ...uri, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: join(folder, 'token') })()
  t.same(
    server.heard.map(({ path, headers }) => [path, headers.authorization]),
    [
      ['/v1/credentials', 'x'],
      ['/v1/credentials', 'pod token'],
    ],
  )
  server.script(answerText('{"AccessKeyId":"AK"}'))
  await t.rejects(open(uri)(), { reason: 'ARTIFACT_UNAVAILABLE', message: /without keys/ })
  server.script(answerText('', 403))
  await t.rejects(open(uri)(), { reason: 'ARTIFACT_DENIED', message: /answered 403, asked/ })
})

await t.test('a machine has the keys of its role, if it has one', async (t) => {
  const { server, open, pass } = await prepareRoles(
    t,
    answerText('session'),
    answerText('reader\n'),
    answerKeys,
  )
  const env = { AWS_EC2_METADATA_SERVICE_ENDPOINT: server.origin }
  const keys = open(env)
  t.match(await keys(), { accessKeyId: 'AK' })
  t.match(server.heard, [
    { path: '/latest/api/token', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '300' } },
    { path: '/latest/meta-data/iam/security-credentials/' },
    {
      path: '/latest/meta-data/iam/security-credentials/reader',
      headers: { 'x-aws-ec2-metadata-token': 'session' },
    },
  ])
  const absent = open(env)
  server.script(answerText('session'), answerText('', 404))
  t.equal(await absent(), undefined)
  server.script(answerText('session'), answerText('reader'), answerKeys)
  t.equal(await absent(), undefined, 'not at once')
  pass(61_000)
  t.match(await absent(), { accessKeyId: 'AK' })
  const asked = server.heard.length
  t.equal(await open({ ...env, AWS_EC2_METADATA_DISABLED: 'true' })(), undefined)
  t.equal(await open(env, false)(), undefined, 'not for a bucket elsewhere')
  t.equal(server.heard.length, asked)
  server.script((request) => request.socket.destroy())
  t.equal(await open(env)(), undefined)
})
