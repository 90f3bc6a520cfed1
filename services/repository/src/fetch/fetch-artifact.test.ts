import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createManualClock } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { type Answer, serveBytes, startArtifactServer } from '../testing/artifact-server.ts'
import { tarArchive } from '../testing/tar-archive.ts'
import { type FetchRequest, fetchArtifact } from './fetch-artifact.ts'

const MODEL = tarArchive([{ name: 'config.pbtxt', data: 'backend: "b"' }])
const ETAG = '"v1"'

async function prepare(t: Test, answer: Answer) {
  const server = await startArtifactServer(answer)
  t.teardown(() => server.close())
  const folder = t.testdir()
  const uri = `${server.origin}/yolo.tar`
  const { signal } = new AbortController()
  const fetched = (o: Partial<FetchRequest> = {}) =>
    fetchArtifact({ uri, to: join(folder, 'model'), signal, ...o })
  const names = async (path = '.'): Promise<readonly string[]> =>
    (await readdir(join(folder, path)).catch((): string[] => [])).toSorted()
  return { server, folder, fetched, names }
}

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

await t.test('what was downloaded is kept when it is stopped while it is unpacked', async (t) => {
  const files = Array.from({ length: 2000 }, (_, i) => ({ name: `1/${i}`, data: 'x' }))
  const many = tarArchive([{ name: 'config.pbtxt', data: '' }, ...files])
  const { server, fetched, names } = await prepare(t, serveBytes(many, ETAG))
  const stop = new AbortController()
  const stopped = t.rejects(fetched({ signal: stop.signal }), { message: 'enough' })
  while (!(await names('.model.fetch')).includes('tree')) await soon()
  stop.abort(new Error('enough'))
  await stopped
  t.match(await fetched(), { isFetched: true, files: 2001 })
  t.equal(server.heard[1]?.headers.range, `bytes=${many.byteLength}-`)
})

await t.test('one that ends while it puts a model in its place is made good', async (t) => {
  const { folder, fetched, names } = await prepare(t, serveBytes(MODEL, ETAG))
  const record = join(folder, '.model.fetched.json')
  await mkdir(record)
  await t.rejects(fetched(), { reason: 'ARTIFACT_NOT_STORED', message: /fetched.json' cannot be/ })
  t.notOk((await names()).includes('model'), 'no model without a record')
  await rm(record, { recursive: true })
  t.match(await fetched(), { isFetched: true })
  t.equal(await readFile(join(folder, 'model/config.pbtxt'), 'utf8'), 'backend: "b"')
})

await t.test('a second one waits, and finds what the first brought', async (t) => {
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  const { server, fetched, names } = await prepare(t, (request, response) => {
    asked.resolve()
    void answered.promise.then(() => serveBytes(MODEL, ETAG)(request, response))
  })
  const first = fetched()
  await asked.promise
  const clock = createManualClock()
  const waits = Promise.withResolvers<void>()
  const second = fetched({ clock, waiting: () => waits.resolve() })
  await waits.promise
  t.equal(server.heard.length, 1)
  answered.resolve()
  t.match(await first, { isFetched: true })
  const progress = { isOver: false }
  const over = second.finally(() => (progress.isOver = true))
  while (!progress.isOver) {
    clock.advance(1000)
    await soon()
  }
  t.match(await over, { isFetched: false })
  t.match(server.heard[1], { headers: { 'if-none-match': ETAG } }, 'nothing is downloaded twice')
  t.same(await names(), ['.model.fetched.json', 'model'])
})
