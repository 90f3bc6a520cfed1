import { join } from 'node:path'
import t from 'tap'
import { scanRepositories } from '../scan.ts'
import { readAwsCredentials } from './aws-credentials.ts'
import { parseRepositoryUri } from './repository-uri.ts'

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
    [
      { HOME: '/none', AWS_WEB_IDENTITY_TOKEN_FILE: 'x' },
      /AWS_WEB_IDENTITY_TOKEN_FILE is no source/,
    ],
    [{ ...keys, AWS_ENDPOINT_URL: 'minio:9000' }, /AWS_ENDPOINT_URL is no http/],
  ]
  for (const [env, message] of wrong) {
    await t.rejects(read(env), { reason: 'SETTING_INVALID', message })
  }
})
