import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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

/** Archive of a model with so many files that its extraction takes a while. */
const MANY = tarArchive([
  { name: 'config.pbtxt', data: '' },
  ...Array.from({ length: 2000 }, (_, i) => ({ name: `1/${i}`, data: 'x' })),
])

await t.test('one that is stopped while it unpacks leaves nothing', async (t) => {
  const { folder, fetched } = await prepare(t, serveBytes(MANY, ETAG))
  const stop = new AbortController()
  const stopped = t.rejects(fetched({ signal: stop.signal }), { message: 'enough' })
  const isUnpacking = async (): Promise<boolean> =>
    (await readdir(folder, { recursive: true })).some((name) => name.endsWith('tree'))
  while (!(await isUnpacking().catch(() => false))) await soon()
  stop.abort(new Error('enough'))
  await stopped
  t.same(await readdir(folder), [])
  t.match(await fetched(), { isFetched: true, files: 2001 })
})

await t.test('what a killed one left behind is deleted, and the log says so', async (t) => {
  const { folder, fetched, names } = await prepare(t, serveBytes(MODEL, ETAG))
  const left = join(folder, '.model.fetch/work-abc/tree')
  await mkdir(left, { recursive: true })
  await writeFile(join(left, 'half'), 'x')
  const warned: unknown[] = []
  const log = { warn: (...line: readonly unknown[]) => void warned.push(line) }
  t.match(await fetched({ log }), { isFetched: true })
  t.same(warned, [
    ['an earlier fetch did not end, beginning anew', { directory: join(folder, 'model') }],
  ])
  t.same(await names(), ['.model.fetched.json', 'model'])
  t.same(await names('model'), ['config.pbtxt'])
})

await t.test('one that began earlier fails, and never mixes its files with another', async (t) => {
  const other = tarArchive([{ name: 'config.pbtxt', data: 'of the first' }])
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  const { server, folder, fetched, names } = await prepare(t, (request, response) => {
    asked.resolve()
    void answered.promise.then(() => serveBytes(other, ETAG)(request, response))
  })
  const first = fetched()
  await asked.promise
  server.script(serveBytes(MODEL, ETAG))
  t.match(await fetched(), { isFetched: true })
  answered.resolve()
  const message = /^another fetch into '.*\/model' began, want one at a time$/
  await t.rejects(first, { reason: 'ARTIFACT_NOT_STORED', message })
  t.equal(await readFile(join(folder, 'model/config.pbtxt'), 'utf8'), 'backend: "b"')
  t.same(await names(), ['.model.fetched.json', 'model'])
})

await t.test('one that ends while it puts a model in its place is made good', async (t) => {
  const { folder, fetched, names } = await prepare(t, serveBytes(MODEL, ETAG))
  const record = join(folder, '.model.fetched.json')
  await mkdir(record)
  await t.rejects(fetched(), { reason: 'ARTIFACT_NOT_STORED', message: /fetched.json/ })
  t.notOk((await names()).includes('model'), 'no model without a record')
  await rm(record, { recursive: true })
  t.match(await fetched(), { isFetched: true })
  t.equal(await readFile(join(folder, 'model/config.pbtxt'), 'utf8'), 'backend: "b"')
})
