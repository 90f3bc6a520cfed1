import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, SecretText, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { type Answer, answerStatus } from '../testing/artifact-server.ts'
import { S3_CREDENTIALS, startScriptedS3 } from '../testing/scripted-s3.ts'
import { type FetchRequest, fetchArtifact, verifyArtifact } from './fetch-artifact.ts'
import { toBase } from './s3-api.ts'

const MODEL = {
  'models/yolo/config.pbtxt': 'backend: "b"',
  'models/yolo/1/model.bin': 'weights'.repeat(1000),
  'models/yolo/1/': '',
  'models/yolo/labels and (more)+é.txt': 'cat',
  'models/yolo2/config.pbtxt': 'another model',
}
const FILES = ['1', '1/model.bin', 'config.pbtxt', 'labels and (more)+é.txt']
const { accessKeyId } = S3_CREDENTIALS
const aws = {
  accessKeyId,
  secretAccessKey: new SecretText(S3_CREDENTIALS.secretAccessKey),
  sessionToken: new SecretText(S3_CREDENTIALS.sessionToken),
}
const clock: Clock = {
  ...systemClock,
  setTimer: (_, callback) => systemClock.setTimer(0, callback),
}

/** Sends without an end, and never stalls. */
const drip: Answer = ({ socket }, response) => {
  response.flushHeaders()
  const timer = setInterval(() => response.write('x'), 20)
  socket.once('close', () => clearInterval(timer))
}

async function prepare(t: Test, o: Parameters<typeof startScriptedS3>[1] = {}) {
  const s3 = await startScriptedS3('bucket', o)
  t.teardown(() => s3.close())
  for (const [key, text] of Object.entries(MODEL)) s3.objects.set(key, text)
  const folder = t.testdir()
  const to = join(folder, 'model')
  const uri = 's3://bucket/models/yolo'
  const awsEndpoint = new URL(s3.origin)
  const { signal } = new AbortController()
  const fetched = (o: Partial<FetchRequest> = {}) =>
    fetchArtifact({ uri, to, clock, signal, credentials: { aws, awsEndpoint }, ...o })
  const failure = async (o: Partial<FetchRequest> = {}): Promise<unknown> =>
    fetched(o).then(
      () => t.fail('it was fetched'),
      (error: unknown) => error,
    )
  const gets = () => s3.heard.filter(({ path }) => !path.includes('list-type')).length
  const files = async () => (await readdir(to, { recursive: true })).toSorted()
  return { s3, folder, to, fetched, failure, gets, files }
}

await t.test('a prefix becomes a folder', async (t) => {
  const { s3, folder, to, fetched, files, gets } = await prepare(t)
  s3.pageSize = 2
  const { digest, ...found } = await fetched()
  t.same(found, { files: 3, bytes: 7015, isFetched: true })
  t.same(await files(), FILES)
  t.same((await readdir(folder)).toSorted(), ['.model.fetched.json', 'model'])
  t.equal(await readFile(join(to, '1/model.bin'), 'utf8'), MODEL['models/yolo/1/model.bin'])
  t.same(await verifyArtifact(to, { digest }), { digest, files: 3, bytes: 7015 })
  t.equal(gets(), 3)
  t.match(await fetched(), { isFetched: false }, 'the listing is the same')
  const asked = s3.heard.length
  t.match(await fetched({ digest }), { isFetched: false })
  t.equal(s3.heard.length, asked, 'with a digest no request is sent')
  s3.objects.set('models/yolo/labels.txt', 'new')
  t.match(await fetched(), { isFetched: true })
  t.equal((await files()).length, 5)
})

await t.test('pods that share a cache download an object once in each of its states', async (t) => {
  const { s3, folder, fetched, gets } = await prepare(t)
  const cache = { directory: join(folder, 'cache'), maxBytes: 10_000 }
  const { digest } = await fetched({ cache })
  t.equal(gets(), 3)
  t.match(await fetched({ cache, to: join(folder, 'other') }), { digest, isFetched: true })
  t.equal(gets(), 3)
  s3.objects.set('models/yolo/config.pbtxt', 'backend: "c"')
  await fetched({ cache, to: join(folder, 'third') })
  t.equal(gets(), 4)
  t.equal(await readFile(join(folder, 'third/config.pbtxt'), 'utf8'), 'backend: "c"')
})

await t.test('where a bucket is', (t) => {
  const cases: readonly (readonly [string, string | undefined, string | undefined, string])[] = [
    ['models', undefined, undefined, 'https://models.s3.us-east-1.amazonaws.com/'],
    ['models', undefined, 'eu-west-1', 'https://models.s3.eu-west-1.amazonaws.com/'],
    ['a.b', undefined, 'eu-west-1', 'https://s3.eu-west-1.amazonaws.com/a.b/'],
    ['models', 'http://minio:9000', undefined, 'http://minio:9000/models/'],
    ['models', 'https://host/s3', undefined, 'https://host/s3/models/'],
    ['models', 'https://models.s3.example.com', undefined, 'https://models.s3.example.com/'],
    ['127', 'http://127.0.0.1:9000', undefined, 'http://127.0.0.1:9000/127/'],
  ]
  for (const [bucket, endpoint, awsRegion, wanted] of cases) {
    const credentials = {
      ...(endpoint !== undefined && { awsEndpoint: new URL(endpoint) }),
      ...(awsRegion !== undefined && { awsRegion }),
    }
    t.equal(toBase(bucket, credentials).href, wanted)
  }
  t.end()
})

await t.test('public buckets, and whole ones', async (t) => {
  const open = await prepare(t, { isPublic: true })
  const credentials = { awsEndpoint: new URL(open.s3.origin) }
  t.match(await open.fetched({ credentials, uri: 's3://bucket' }), { files: 4 })
  t.equal(open.s3.heard[0]?.headers.authorization, undefined)
})

await t.test('the error has the text of S3', async (t) => {
  const { s3, failure } = await prepare(t)
  const wrong = { aws: { ...aws, accessKeyId: 'other' }, awsEndpoint: new URL(s3.origin) }
  t.match(await failure({ credentials: wrong }), {
    reason: 'ARTIFACT_DENIED',
    message: /answered 403, SignatureDoesNotMatch: The signature does not match\.$/,
  })
  s3.faults.push((_, response) => {
    response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
  })
  t.match(await failure({ credentials: { awsEndpoint: new URL(s3.origin) } }), {
    reason: 'ARTIFACT_DENIED',
    message: /answered 403, AccessDenied \(asked without credentials, none were found\)$/,
  })
  t.match(await failure({ uri: 's3://bucket/nothing' }), {
    reason: 'ARTIFACT_NOT_FOUND',
    message: "'s3://bucket/nothing' has no objects, want a model's directory",
  })
  t.match(await failure({ uri: 's3://another/x' }), {
    reason: 'ARTIFACT_NOT_FOUND',
    message: /answered 404, NoSuchBucket/,
  })
  s3.faults.push(answerStatus(301, { 'x-amz-bucket-region': 'eu-west-1' }))
  const once = { bounds: { attempts: 1 } }
  t.match(await failure(once), { message: /the bucket is in the region eu-west-1$/ })
  s3.faults.push((_, response) => {
    response.writeHead(400).end('<Error><Code>ExpiredToken</Code></Error>')
  })
  t.match(await failure(), { reason: 'ARTIFACT_DENIED', message: /answered 400, ExpiredToken$/ })
  for (const uri of ['s3://', 's3://B/x', 's3:///x']) {
    t.match(await failure({ uri }), { reason: 'FLAG_INVALID' })
  }
})

await t.test('faults that pass', async (t) => {
  const { s3, fetched, files } = await prepare(t)
  const half = '<ListBucketResult><Contents><Key>models/yolo/a</Key>'
  s3.faults.push(
    answerStatus(503),
    (_, response) => void response.writeHead(200).end(half),
    (request) => request.socket.destroy(),
  )
  t.match(await fetched(), { isFetched: true })
  t.same(await files(), FILES)
})

await t.test('it tells how far it is, and begins an attempt with what is whole', async (t) => {
  const { s3, fetched, failure } = await prepare(t)
  const heard: unknown[] = []
  let received = 0
  const openTransfer = (what: string) => ({
    begin: (state: object) => void heard.push({ what, ...state }),
    add: (bytes: number) => void (received += bytes),
    end: (isWhole: boolean) => void heard.push({ isWhole, received }),
  })
  let breaks = 1
  s3.onGet = (key) => {
    if (!key.endsWith('model.bin') || breaks === 0) return
    breaks -= 1
    // The bucket has another state now: what comes is thrown away.
    s3.objects.set(key, 'x'.repeat(7000))
    s3.objects.set('models/yolo/config.pbtxt', 'backend: "c"')
  }
  t.match(await fetched({ openTransfer }), { bytes: 7015 })
  t.match(heard[0], { what: 's3://bucket/models/yolo', bytes: 0, totalBytes: 7015 })
  t.match(heard.at(-2), { totalBytes: 7015 })
  t.match(heard.at(-1), { isWhole: true })
  t.ok(received >= 7015, `${received}`)
  s3.denied.add('models/yolo/config.pbtxt')
  s3.objects.set('models/yolo/other', '')
  await failure({ openTransfer })
  t.match(heard.at(-1), { isWhole: false })
})

await t.test('an object that cannot be read ends the fetch', async (t) => {
  const { s3, failure, fetched, folder, files } = await prepare(t)
  for (let i = 10; i < 30; i++) s3.objects.set(`models/yolo/2/${i}`, `${i}`)
  s3.denied.add('models/yolo/2/20')
  t.match(await failure(), { reason: 'ARTIFACT_DENIED', message: /answered 403, AccessDenied/ })
  t.same(await readdir(folder), [], 'nothing is left of it')
  s3.denied.clear()
  t.match(await fetched(), { files: 23, isFetched: true })
  t.equal((await files()).length, 25)
})

await t.test('objects that change during the fetch are listed anew', async (t) => {
  const { s3, to, folder, fetched, failure } = await prepare(t)
  let changes = 1
  s3.onGet = (key) => {
    if (!key.endsWith('model.bin') || changes === 0) return
    changes -= 1
    s3.objects.set(key, `version ${changes}`)
    s3.objects.delete('models/yolo/config.pbtxt')
  }
  t.match(await fetched(), { isFetched: true, files: 2 })
  t.equal(await readFile(join(to, '1/model.bin'), 'utf8'), 'version 0')
  t.notOk((await readdir(to)).includes('config.pbtxt'), 'what is listed no more is not kept')
  changes = 100
  s3.objects.set('models/yolo/1/model.bin', 'again')
  t.match(await failure(), {
    reason: 'ARTIFACT_UNAVAILABLE',
    message: "object 'models/yolo/1/model.bin' changed during the fetch",
  })
  t.same((await readdir(folder)).toSorted(), ['.model.fetched.json', 'model'])
  t.equal(await readFile(join(to, '1/model.bin'), 'utf8'), 'version 0')
})

await t.test('what came is not fetched again by the next attempt', async (t) => {
  const { s3, fetched, gets } = await prepare(t)
  for (let i = 10; i < 30; i++) s3.objects.set(`models/yolo/2/${i}`, `${i}`)
  // The last that is listed: all but those that run beside it are there by then.
  s3.objects.set('models/yolo/z', 'z')
  let cuts = 1
  s3.onGet = (key) => {
    if (!key.endsWith('/z') || cuts === 0) return
    cuts -= 1
    s3.objects.delete(key)
    setImmediate(() => s3.objects.set(key, 'z'))
  }
  t.match(await fetched(), { isFetched: true, files: 24 })
  t.equal(cuts, 0)
  t.ok(gets() <= 24 + 4, `${gets()}`)
})

await t.test('a digest is that of the tree', async (t) => {
  const { failure, fetched } = await prepare(t)
  const digest = `sha256:${'0'.repeat(64)}`
  const refused = await failure({ digest })
  t.match(refused, { reason: 'ARTIFACT_MISMATCH' })
  const [, actual = ''] = /has (sha256:[0-9a-f]{64}),/.exec(String(refused)) ?? []
  t.match(await fetched({ digest: actual }), { digest: actual })
})

await t.test('what has the wanted digest is taken, however it came there', async (t) => {
  const { s3, folder, to, fetched, failure } = await prepare(t)
  const { digest } = await fetched()
  await rename(to, join(folder, 'copied'))
  await rm(join(folder, '.model.fetched.json'))
  await rename(join(folder, 'copied'), to)
  const asked = s3.heard.length
  t.match(await fetched({ digest }), { digest, files: 3, isFetched: false })
  t.match(await fetched({ digest, uri: 's3://bucket/moved' }), { isFetched: false })
  await writeFile(join(to, 'config.pbtxt'), 'mine')
  t.match(await failure({ digest }), { reason: 'ARTIFACT_NOT_STORED', message: /not fetched/ })
  t.equal(s3.heard.length, asked)
})

await t.test('keys that lead out, and too many', async (t) => {
  for (const name of ['../outside', 'a//b', 'config.pbtxt/x', '/etc/x']) {
    const { s3, failure, folder } = await prepare(t)
    s3.objects.set(`models/yolo/${name}`, 'x')
    t.match(await failure(), { reason: 'ARTIFACT_INVALID', message: / is refused: / })
    t.notOk((await readdir(folder)).includes('outside'))
  }
  const { failure } = await prepare(t)
  t.match(await failure({ bounds: { maxFiles: 2 } }), { reason: 'ARTIFACT_TOO_LARGE' })
  t.match(await failure({ bounds: { maxBytes: 7000 } }), { reason: 'ARTIFACT_TOO_LARGE' })
})

await t.test('a list that does not end is left', async (t) => {
  const { s3, failure } = await prepare(t)
  const page =
    '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>'
  for (let i = 0; i < 2; i++)
    s3.faults.push((_, response) => void response.writeHead(200).end(page))
  const once = { bounds: { attempts: 1 } }
  t.match(await failure(once), { message: /answered with half a list of keys$/ })
})

await t.test('a server that sends a byte at a time is left', async (t) => {
  const { s3, failure } = await prepare(t)
  const bounds = { bounds: { attempts: 1, stallMs: 150 } }
  s3.faults = [drip]
  const slow = /cannot be read: \d+ bytes came in \d+ ms, want at least 154$/
  t.match(await failure(bounds), { reason: 'ARTIFACT_UNAVAILABLE', message: slow })
  s3.faults = [
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nx: ')
      const timer = setInterval(() => socket.write('x'), 20)
      socket.once('close', () => clearInterval(timer))
    },
  ]
  t.match(await failure(bounds), { message: /cannot be read: no head came for 300 ms$/ })
})
