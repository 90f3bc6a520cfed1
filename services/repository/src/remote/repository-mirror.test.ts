import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { ModelRepository } from '../model-repository.ts'
import { pollRepository } from '../poll-repository.ts'
import { RepositoryWatch } from '../repository-watch.ts'
import { type Answer, answerStatus, serveBytes } from '../testing/artifact-server.ts'
import { S3_CREDENTIALS, startScriptedS3 } from '../testing/scripted-s3.ts'
import { RepositoryMirror } from './repository-mirror.ts'
import { parseRepositoryUri } from './repository-uri.ts'

const ENV = {
  AWS_ACCESS_KEY_ID: S3_CREDENTIALS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: S3_CREDENTIALS.secretAccessKey,
  AWS_SESSION_TOKEN: S3_CREDENTIALS.sessionToken,
  AWS_REGION: 'us-east-1',
}
const CONFIG = 'backend: "b"'
const clock: Clock = {
  ...systemClock,
  setTimer: (_, callback) => systemClock.setTimer(0, callback),
}

async function open(t: Test) {
  const s3 = await startScriptedS3('bucket')
  s3.pageSize = 2
  const put = (files: Readonly<Record<string, string>>): void => {
    for (const [key, text] of Object.entries(files)) s3.objects.set(`repo/${key}`, text)
  }
  put({ 'm/config.pbtxt': CONFIG, 'm/1/model.bin': 'one', 'n/1/model.bin': 'x', note: '' })
  put({ 'e/config.pbtxt': 'platform: "ensemble"', 'e/1/': '', '.git/x': '', 'o/1/model.bin': 'y' })
  const temporaryDirectory = t.testdir()
  const at = parseRepositoryUri(`s3://${s3.origin}/bucket/repo/`)
  const repository = new ModelRepository({
    paths: [],
    mirrors: [
      new RepositoryMirror(at, {
        env: { ...ENV, HOME: temporaryDirectory },
        clock,
        temporaryDirectory,
      }),
    ],
  })
  t.teardown(async () => {
    await repository.close()
    await s3.close()
  })
  const gets = () => s3.heard.filter(({ path }) => !path.includes('list-type')).length
  return { s3, put, repository, gets, temporaryDirectory }
}

await t.test('models of a bucket are listed, and copied when they are asked for', async (t) => {
  const { repository, gets, put, temporaryDirectory } = await open(t)
  t.same(await repository.names(), ['e', 'm', 'n', 'o'])
  t.equal(gets(), 0)
  const { model, digest } = await repository.take('m')
  t.match(model, { name: 'm', versions: [1], configText: CONFIG })
  t.equal(await readFile(join(model.directory, '1/model.bin'), 'utf8'), 'one')
  t.equal(gets(), 2)
  t.equal((await repository.take('m')).digest, digest)
  t.equal(gets(), 2, 'the listing is the same')
  t.same((await repository.take('e')).model.versions, [1], 'an empty folder is a version')
  put({ 'm/2/model.bin': 'two' })
  const [one, two] = await Promise.all([repository.take('m'), repository.take('m')])
  t.same(
    [one.model.versions, two.model.versions],
    [
      [1, 2],
      [1, 2],
    ],
  )
  t.not(one.digest, digest)
  await t.rejects(repository.take('absent'), { message: /has a directory 'absent'/ })
  await repository.close()
  t.same(await readdir(temporaryDirectory), [])
})

await t.test(
  'changes of a bucket are followed, and one that is away changes nothing',
  async (t) => {
    const { s3, put, repository } = await open(t)
    const watch = new RepositoryWatch(repository)
    t.same(await watch.start(), ['e', 'm', 'n', 'o'])
    put({ 'n/1/model.bin': 'changed' })
    s3.objects.delete('repo/o/1/model.bin')
    s3.faults = Array.from({ length: 3 }, () => answerStatus(503))
    await t.rejects(watch.look(), {
      reason: 'REPOSITORY_UNREADABLE',
      message: /^model repository 's3:.*\/bucket\/repo\/' cannot be read: .* answered 503/,
    })
    t.match(await watch.look(), { changed: [], removed: [], isSettling: true })
    t.match(await watch.look(), { changed: ['n'], removed: ['o'] })
    t.same(await repository.names(), ['e', 'm', 'n'])
  },
)

await t.test('what a bucket refuses is told', async (t) => {
  const { s3, repository } = await open(t)
  s3.denied.add('repo/m/1/model.bin')
  await t.rejects(repository.take('m'), { message: /cannot be read: .*AccessDenied/ })
  s3.denied.clear()
  t.same((await repository.take('m')).model.versions, [1])
})

await t.test('a bucket whose list has no end is refused', async (t) => {
  const { s3, repository } = await open(t)
  let pages = 0
  const page = (text: string): Answer => {
    return (request, response) => {
      pages += 1
      const token = `<NextContinuationToken>t${pages}</NextContinuationToken>`
      const body = `<ListBucketResult>${text}<IsTruncated>true</IsTruncated>${token}</ListBucketResult>`
      serveBytes(Buffer.from(body), '')(request, response)
    }
  }
  s3.faults = Array.from({ length: 1100 }, () => page(''))
  const message = /cannot be read: more than 1000 pages of keys, want at most that$/
  await t.rejects(repository.names(), { reason: 'REPOSITORY_UNREADABLE', message })
  t.equal(pages, 1000)
  const folders = Array.from({ length: 50_001 }, (_, i) => `m${i}/</Prefix></CommonPrefixes>`)
  s3.faults = [0, 1, 2].map((n) => {
    const begin = `<CommonPrefixes><Prefix>repo/${n}`
    return page(begin + folders.join(begin))
  })
  const tooMany = /cannot be read: more than 100000 folders, want at most that$/
  await t.rejects(repository.names(), { reason: 'REPOSITORY_UNREADABLE', message: tooMany })
  t.equal(pages, 1002)
})

await t.test('a stop waits for no bucket that does not answer', async (t) => {
  const { s3, repository, temporaryDirectory } = await open(t)
  const watch = new RepositoryWatch(repository)
  await watch.start()
  const asked = Promise.withResolvers<void>()
  s3.faults = [() => asked.resolve()]
  const stop = new AbortController()
  const failed: string[] = []
  const followed = pollRepository({
    watch,
    pollMs: 0,
    clock,
    signal: stop.signal,
    apply: () => Promise.resolve(),
    failed: ({ message }) => failed.push(message),
  })
  await asked.promise
  stop.abort()
  await repository.abandon(followed)
  t.same(failed, [], 'what is given up has not failed')
  await repository.close()
  t.same(await readdir(temporaryDirectory), [])
})

await t.test('a start is given up when it is stopped', async (t) => {
  const { s3, repository } = await open(t)
  const stop = new AbortController()
  s3.faults = [() => stop.abort()]
  const names = repository.untilStopped(stop.signal, () => repository.names())
  await t.rejects(names, { message: /cannot be read: the repository is closed$/ })
  await t.rejects(repository.untilStopped(stop.signal, () => repository.names()))
})
