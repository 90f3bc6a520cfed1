// needs: buckets
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readCredentials } from '../fetch/credentials.ts'
import { fetchArtifact } from '../fetch/fetch-artifact.ts'
import { azuriteCloud, type Cloud, fakeGcsCloud, withoutServer } from '../testing/cloud-buckets.ts'
import { cloudBuckets } from './cloud-buckets.ts'
import { podCloudIdentity } from './pod-cloud-identity.ts'

/** A pod fetches a model from a bucket with a Secret alone. */
async function testFetch(t: Test, cloud: Cloud): Promise<void> {
  t.teardown(() => cloud.close())
  const bucket = await cloud.bucket()
  t.teardown(() => bucket.close())
  await bucket.put('yolo/config.pbtxt', 'backend: "b"')
  await bucket.put('yolo/1/model.bin', 'weights'.repeat(1000))
  await bucket.put('yolo2/config.pbtxt', 'of another model')
  const folder = t.testdir()
  const secret = join(folder, 'secret')
  await mkdir(secret)
  for (const [key, text] of Object.entries(bucket.env)) await writeFile(join(secret, key), text)
  const fetchIt = async (to: string, directory: string | undefined) =>
    await fetchArtifact({
      uri: `${bucket.uri}/yolo`,
      to: join(folder, to),
      credentials: await readCredentials(directory),
      openBucket: cloudBuckets({
        env: { HOME: folder, GCE_METADATA_HOST: '127.0.0.1:1', ...endpointsIn(bucket.env) },
        identity: podCloudIdentity(),
      }),
      bounds: { attempts: 1 },
      signal: new AbortController().signal,
    })
  t.match(await fetchIt('model', secret), { files: 2, bytes: 7012, isFetched: true })
  t.equal(await readFile(join(folder, 'model/config.pbtxt'), 'utf8'), 'backend: "b"')
  t.match(await fetchIt('model', secret), { isFetched: false }, 'the listing is the same')
  await t.rejects(fetchIt('other', undefined), {
    reason: 'ARTIFACT_DENIED',
    message: /asked without credentials/,
  })
}

/** The addresses of servers that are not the clouds' own, without credentials. */
function endpointsIn(env: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name.endsWith('_ENDPOINT')))
}

await t.test('Google Cloud Storage', { skip: withoutServer('TUTTI_FAKE_GCS') }, async (t) =>
  testFetch(t, await fakeGcsCloud()),
)

await t.test('Azure Blob Storage', { skip: withoutServer('TUTTI_AZURITE') }, async (t) =>
  testFetch(t, await azuriteCloud()),
)
