import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, systemClock } from '@tutti/chassis'
import type { Test } from 'tap'
import { ModelRepository } from '../model-repository.ts'
import { pollRepository } from '../poll-repository.ts'
import { RepositoryMirror } from '../remote/repository-mirror.ts'
import { parseRepositoryUri } from '../repository-uri.ts'
import { RepositoryWatch } from '../repository-watch.ts'
import { type Answer, answerStatus } from './artifact-server.ts'
import { answerText, type Cloud, type CloudBucket } from './cloud-buckets.ts'

const CONFIG = 'backend: "b"'
const FILES = {
  'm/config.pbtxt': CONFIG,
  'm/1/model.bin': 'one',
  'n/1/labels and (more)+é.txt': 'x',
  'n/1/model.bin': 'x',
  note: '',
  'e/config.pbtxt': 'platform: "ensemble"',
  'e/1/': '',
  '.git/x': '',
  'o/1/model.bin': 'y',
}
const clock: Clock = {
  ...systemClock,
  setTimer: (_, callback) => systemClock.setTimer(0, callback),
}

const LIST = /list-type=|comp=list|[?&]fields=/
const answerHtml: Answer = (_, response) => {
  const type = { 'content-type': 'text/html' }
  response.writeHead(200, type).end('<!DOCTYPE html><html><title>Console</title></html>')
}

async function open(t: Test, cloud: Cloud, isNamespaced = false) {
  const { identity } = cloud
  const bucket = await cloud.bucket()
  const put = async (files: Readonly<Record<string, string>>): Promise<void> => {
    for (const [key, text] of Object.entries(files)) await bucket.put(key, text)
  }
  await put(FILES)
  const temporaryDirectory = t.testdir({ home: {}, copies: {} })
  const home = join(temporaryDirectory, 'home')
  const transfers: unknown[] = []
  const openTransfer = (uri: string) => ({
    begin: (state: object) => void transfers.push({ uri, ...state }),
    add: () => {},
    end: (isWhole: boolean) => void transfers.push({ uri, isWhole }),
  })
  const copies = join(temporaryDirectory, 'copies')
  const repository = new ModelRepository({
    isNamespaced,
    paths: [],
    mirrors: [
      new RepositoryMirror(parseRepositoryUri(bucket.uri), {
        env: { ...(await writeCredentials(home, bucket)), HOME: home },
        clock,
        identity,
        openTransfer,
        temporaryDirectory: copies,
      }),
    ],
  })
  t.teardown(async () => {
    await repository.close()
    await bucket.close()
  })
  const gets = () => bucket.heard.filter(({ path }) => !LIST.test(path)).length
  return { bucket, put, repository, gets, copies, transfers }
}

async function writeCredentials(home: string, { env }: Pick<CloudBucket, 'env'>) {
  const name = 'GOOGLE_APPLICATION_CREDENTIALS'
  const text = env[name]
  if (text === undefined) return env
  const path = join(home, 'key.json')
  await writeFile(path, text)
  return { ...env, [name]: path }
}

/** Tests what a repository in a bucket does, whichever cloud has it. */
export async function testMirror(t: Test, cloud: Cloud): Promise<void> {
  await t.test('a bucket may be a namespace', async (t) => {
    const { repository, bucket, gets } = await open(t, cloud, true)
    const names = ['e', 'm', 'n', 'o'].map((name) => `${bucket.uri}::${name}`)
    t.same(await repository.names(), names)
    const { model } = await repository.take(`${bucket.uri}::m`)
    t.match(model, { name: `${bucket.uri}::m`, versions: [1], configText: CONFIG })
    t.equal(gets(), 2, 'only what is wanted is copied')
    await t.rejects(repository.take('m'), { code: 'NOT_FOUND' })
  })

  await t.test('models of a bucket are listed, and copied when they are asked for', async (t) => {
    const { repository, gets, put, copies, bucket, transfers } = await open(t, cloud)
    t.same(await repository.names(), ['e', 'm', 'n', 'o'])
    t.equal(gets(), 0)
    const { model, digest } = await repository.take('m')
    t.match(model, { name: 'm', versions: [1], configText: CONFIG })
    t.equal(await readFile(join(model.directory, '1/model.bin'), 'utf8'), 'one')
    t.equal(gets(), 2)
    const uri = `${bucket.uri.replace(/\/$/, '')}/m`
    const totalBytes = CONFIG.length + 'one'.length
    t.same(transfers, [
      { uri, bytes: 0, totalBytes },
      { uri, isWhole: true },
    ])
    t.equal((await repository.take('m')).digest, digest)
    t.equal(gets(), 2, 'the listing is the same')
    const named = (await repository.take('n')).model
    t.same(await readdir(join(named.directory, '1')), ['labels and (more)+é.txt', 'model.bin'])
    t.same((await repository.take('e')).model.versions, [1], 'an empty folder is a version')
    await put({ 'm/2/model.bin': 'two' })
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
    await t.rejects(repository.names(), { message: /the repository is closed$/ })
    t.same(await readdir(copies), [])
  })

  await t.test('what a cleaner of temporary folders takes is copied again', async (t) => {
    const { repository, copies } = await open(t, cloud)
    const take = async (): Promise<string> => {
      const { directory } = (await repository.take('m')).model
      t.equal(await readFile(join(directory, '1/model.bin'), 'utf8'), 'one')
      return directory
    }
    const directory = await take()
    await rm(join(directory, '1/model.bin'))
    await take()
    await rm(join(directory, '../.m.fetched.json'))
    await take()
    await rm(join(directory, '..'), { recursive: true })
    t.not(await take(), directory)
    t.equal((await readdir(copies)).length, 1)
    t.same(await repository.names(), ['e', 'm', 'n', 'o'])
  })

  await t.test('a list that is young enough is not asked for again', async (t) => {
    const { bucket, repository, put } = await open(t, cloud)
    const lists = () => bucket.heard.filter(({ path }) => LIST.test(path)).length
    bucket.faults = Array.from({ length: 3 }, () => answerStatus(503))
    await t.rejects(repository.names(60_000), { message: /answered 503/ })
    await Promise.all([repository.names(60_000), repository.names(60_000)])
    const asked = lists()
    await put({ 'p/1/model.bin': 'new' })
    t.same(await repository.names(60_000), ['e', 'm', 'n', 'o'])
    t.equal(lists(), asked)
    t.same(await repository.names(), ['e', 'm', 'n', 'o', 'p'])
  })

  await t.test(
    'changes of a bucket are followed, and one that is away changes nothing',
    async (t) => {
      const { bucket, put, repository } = await open(t, cloud)
      const watch = new RepositoryWatch(repository)
      t.same(await watch.start(), ['e', 'm', 'n', 'o'])
      await put({ 'n/1/model.bin': 'changed' })
      await bucket.remove('o/1/model.bin')
      bucket.faults = Array.from({ length: 3 }, () => answerStatus(503))
      await t.rejects(watch.look(), {
        reason: 'REPOSITORY_UNREADABLE',
        message: /^model repository '(s3|gs|as):.*\/repo\/?' cannot be read: .* answered 503/,
      })
      t.match(await watch.look(), { changed: [], removed: [], isSettling: true })
      t.match(await watch.look(), { changed: ['n'], removed: ['o'] })
      t.same(await repository.names(), ['e', 'm', 'n'])
    },
  )

  await t.test('what a bucket refuses is told', async (t) => {
    const { bucket, repository } = await open(t, cloud)
    const { answer, text } = cloud.refusal
    bucket.faults = [answer]
    await t.rejects(repository.take('m'), { reason: 'REPOSITORY_UNREADABLE', message: text })
    t.same((await repository.take('m')).model.versions, [1])
  })

  await t.test('what is no list of keys is told', async (t) => {
    const { bucket, repository } = await open(t, cloud)
    bucket.faults = Array.from({ length: 3 }, () => answerHtml)
    await t.rejects(repository.names(), {
      message:
        /answered with text\/html that begins "<!DOCTYPE html><html>.*", want a list of keys$/,
    })
    const page = cloud.page({ folders: ['a', 'b'], next: 'c' })
    const half = answerText(page.slice(0, -9))
    bucket.faults = Array.from({ length: 3 }, () => half)
    await t.rejects(repository.names(), { message: /answered with half a list of keys$/ })
    t.equal((await repository.names()).length, 4)
  })

  await t.test('a list goes on behind a page, and one without an end is refused', async (t) => {
    const { bucket, repository } = await open(t, cloud)
    const page = (folders: readonly string[], next: string): Answer =>
      answerText(cloud.page({ folders, next }))
    bucket.faults = [page(['a'], 'x'), page([], '')]
    t.same(await repository.names(), ['a'])
    t.match(bucket.heard.at(-1)?.path, /(continuation-token|pageToken|marker)=x/)
    bucket.faults = Array.from({ length: 6 }, () => page([], 'x'))
    await t.rejects(repository.names(), { message: /half a list of keys$/ })
    let pages = 0
    const nextPage = (folders: readonly string[]): Answer => {
      return (request, response) => {
        pages += 1
        page(folders, `t${pages}`)(request, response)
      }
    }
    bucket.faults = Array.from({ length: 1100 }, () => nextPage([]))
    const message = /cannot be read: more than 1000 pages of keys, which is the limit$/
    await t.rejects(repository.names(), { reason: 'REPOSITORY_UNREADABLE', message })
    t.equal(pages, 1000)
    bucket.faults = [0, 1, 2].map((n) =>
      nextPage(Array.from({ length: 50_001 }, (_, i) => `${n}m${i}`)),
    )
    const tooMany = /cannot be read: more than 100000 folders, which is the limit$/
    await t.rejects(repository.names(), { reason: 'REPOSITORY_UNREADABLE', message: tooMany })
    t.equal(pages, 1002)
  })

  await t.test('a stop waits for no bucket that does not answer', async (t) => {
    const { bucket, repository, copies } = await open(t, cloud)
    const watch = new RepositoryWatch(repository)
    await watch.start()
    const asked = Promise.withResolvers<void>()
    bucket.faults = [() => asked.resolve()]
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
    t.same(await readdir(copies), [])
  })

  await t.test('a start is given up when it is stopped', async (t) => {
    const { bucket, repository } = await open(t, cloud)
    const stop = new AbortController()
    bucket.faults = [() => stop.abort()]
    const names = repository.untilStopped(stop.signal, () => repository.names())
    await t.rejects(names, { message: /cannot be read: the repository is closed$/ })
    await t.rejects(repository.untilStopped(stop.signal, () => repository.names()))
  })
}
