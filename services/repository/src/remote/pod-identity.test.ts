import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import t, { type Test } from 'tap'
import type { FetchCredentials } from '../fetch/credentials.ts'
import { fetchArtifact } from '../fetch/fetch-artifact.ts'
import { startArtifactServer } from '../testing/artifact-server.ts'
import { S3_CREDENTIALS, startScriptedS3 } from '../testing/scripted-s3.ts'
import { awsPodIdentity } from './pod-identity.ts'

const END = '2999-01-01T00:00:00Z'
const { accessKeyId, secretAccessKey, sessionToken } = S3_CREDENTIALS

const reasonOf = (error: unknown) => ServeError.from(error).reason

/** Serves a bucket, and the keys that the cloud gives to a pod. */
async function prepare(t: Test) {
  const s3 = await startScriptedS3('bucket')
  t.teardown(() => s3.close())
  s3.objects.set('yolo/config.pbtxt', 'backend: "b"')
  const xml = `<R><Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey><SessionToken>${sessionToken}</SessionToken><Expiration>${END}</Expiration></Credentials></R>`
  const keys = { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken }
  const json = JSON.stringify({ ...keys, Expiration: END })
  const cloud = await startArtifactServer(({ url }, response) => {
    response.end(url === '/v1/credentials' ? json : xml)
  })
  t.teardown(() => cloud.close())
  const folder = t.testdir({ token: 'jwt' })
  const fetchWith = (env: Record<string, string>, o: FetchCredentials = {}) =>
    fetchArtifact({
      uri: 's3://bucket/yolo',
      to: join(folder, 'model'),
      signal: new AbortController().signal,
      bounds: { attempts: 1 },
      credentials: { awsEndpoint: new URL(s3.origin), ...o },
      identity: awsPodIdentity(env),
    })
  return { s3, cloud, folder, fetchWith }
}

await t.test('a ServiceAccount with a role reads its bucket', async (t) => {
  const { s3, cloud, folder, fetchWith } = await prepare(t)
  await fetchWith({
    AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, 'token'),
    AWS_ROLE_ARN: 'arn:aws:iam::1:role/reader',
    AWS_ENDPOINT_URL_STS: cloud.origin,
    AWS_REGION: 'eu-west-1',
  })
  t.equal(await readFile(join(folder, 'model/config.pbtxt'), 'utf8'), 'backend: "b"')
  t.match(s3.heard[0]?.headers.authorization, '/eu-west-1/s3/')
  t.equal(cloud.heard.length, 1, 'keys are asked for once')
})

await t.test('and one with EKS Pod Identity', async (t) => {
  const { cloud, fetchWith } = await prepare(t)
  const found = await fetchWith({
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${cloud.origin}/v1/credentials`,
  })
  t.equal(found.files, 1)
  t.ok(cloud.heard.length > 0)
})

await t.test('keys of the Secret come first, and without an identity there are none', async (t) => {
  const { cloud, fetchWith } = await prepare(t)
  const uri = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${cloud.origin}/v1/credentials` }
  const secret = { accessKeyId: 'other', secretAccessKey: new SecretText('x') }
  t.equal(await fetchWith(uri, { aws: secret }).then(String, reasonOf), 'ARTIFACT_DENIED')
  t.equal(cloud.heard.length, 0)
  t.equal(awsPodIdentity({ AWS_REGION: 'eu-west-1' }), undefined)
  t.equal(await fetchWith({}).then(String, reasonOf), 'ARTIFACT_DENIED')
})
