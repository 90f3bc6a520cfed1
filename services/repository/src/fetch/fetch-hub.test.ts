import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, SecretText, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { type Answer, answerStatus, startArtifactServer } from '../testing/artifact-server.ts'
import { serveRange, startScriptedHub } from '../testing/scripted-hub.ts'
import { type FetchRequest, fetchArtifact, verifyArtifact } from './fetch-artifact.ts'

const WEIGHTS = 'weights'.repeat(800_000)
const REPOSITORY = {
  '.gitattributes': '*.onnx filter=lfs',
  'README.md': 'a model',
  'faces/config.pbtxt': 'backend: "onnxruntime"',
  'faces/1/model.onnx': WEIGHTS,
  'faces/labels and (more)+é.txt': 'cat',
  'onnx/model.onnx': 'graph'.repeat(100),
  'onnx/model.onnx_data': WEIGHTS,
  'onnx/model_int8.onnx': 'small',
}
const clock: Clock = {
  ...systemClock,
  setTimer: (_, callback) => systemClock.setTimer(0, callback),
}

/** Sends the bytes of a range up to a position of the file, and then ends the connection. */
const cutAt =
  (position: number): Answer =>
  (request, response) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    const size = WEIGHTS.length
    const range = { 'content-range': `bytes ${from}-${size - 1}/${size}` }
    response.writeHead(from === 0 ? 200 : 206, {
      ...(from > 0 && range),
      'content-length': size - from,
    })
    response.write(WEIGHTS.slice(from, position), () => response.socket?.end())
  }

const listing =
  (...entries: readonly unknown[]): Answer =>
  (_, response) =>
    response.end(JSON.stringify(entries))

const page =
  (link: string): Answer =>
  (_, response) =>
    response.writeHead(200, { link }).end('[]')

async function prepare(t: Test, o: { readonly token?: string } = {}) {
  const scripted = await startScriptedHub(o)
  t.teardown(() => scripted.close())
  for (const [path, text] of Object.entries(REPOSITORY)) scripted.hub.files.set(path, text)
  const folder = t.testdir()
  const to = join(folder, 'model')
  const uri = 'hf://owner/name/faces'
  const { endpoint } = scripted
  const token = o.token === undefined ? {} : { token: new SecretText(o.token) }
  const { signal } = new AbortController()
  const fetched = (more: Partial<FetchRequest> = {}) =>
    fetchArtifact({ uri, to, clock, signal, credentials: { hub: { endpoint, ...token } }, ...more })
  const failure = async (more: Partial<FetchRequest> = {}): Promise<unknown> =>
    fetched(more).then(
      () => t.fail('it was fetched'),
      (error: unknown) => error,
    )
  const files = async () => {
    const entries = await readdir(to, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(to.length + 1))
      .toSorted()
  }
  return { ...scripted, folder, to, fetched, failure, files }
}

await t.test('a folder of a repository becomes a model', async (t) => {
  const { hub, server, store, to, folder, fetched, files } = await prepare(t, { token: 'hidden' })
  hub.pageSize = 1
  const { digest, ...found } = await fetched()
  t.same(found, { files: 3, bytes: WEIGHTS.length + 25, isFetched: true })
  t.same(await files(), ['1/model.onnx', 'config.pbtxt', 'labels and (more)+é.txt'])
  t.equal(await readFile(join(to, '1/model.onnx'), 'utf8'), WEIGHTS)
  t.same((await readdir(folder)).toSorted(), ['.model.fetched.json', 'model'])
  t.match(await verifyArtifact(to, { digest }), { digest, files: 3 })
  t.ok(server.heard.every(({ headers }) => headers.authorization === 'Bearer hidden'))
  t.equal(store.heard.length, 1)
  t.equal(store.heard[0]?.headers.authorization, undefined, 'another server does not get the token')
  const asked = server.heard.length
  t.match(await fetched(), { isFetched: false }, 'the branch is at the same commit')
  t.equal(server.heard.length, asked + 1)
  t.match(await fetched({ digest }), { isFetched: false })
  t.match(await fetched({ uri: 'hf://other/repository', digest }), { isFetched: false })
  t.equal(server.heard.length, asked + 1, 'with a digest no request is sent')
  hub.commit = 'a'.repeat(40)
  hub.files.set('faces/labels.txt', 'dog')
  t.match(await fetched(), { isFetched: true, files: 4 })
})

await t.test('a list that is too long is not read to its end', async (t) => {
  const { hub, server, failure, fetched } = await prepare(t)
  hub.pageSize = 1
  t.match(await failure({ bounds: { maxFiles: 1 } }), {
    reason: 'ARTIFACT_TOO_LARGE',
    message: /^more than 1 files, which is the limit$/,
  })
  const pages = server.heard.filter(({ path }) => path.includes('/tree/'))
  t.equal(pages.length, 2, 'of three')
  const uri = 'hf://owner/name/onnx/model_int8.onnx'
  t.match(await fetched({ uri, bounds: { maxFiles: 1 } }), { files: 1 }, 'other files do not count')
})

await t.test('a commit is not looked up, and a branch may have a slash', async (t) => {
  const { hub, server, fetched, failure } = await prepare(t)
  t.match(await fetched({ uri: `hf://owner/name@${hub.commit}/faces` }), { files: 3 })
  t.match(server.heard[0]?.path, /\/tree\//)
  server.heard.length = 0
  t.match(await failure({ uri: 'hf://owner/name@refs%2Fpr%2F1' }), { reason: 'ARTIFACT_NOT_FOUND' })
  t.equal(server.heard[0]?.path, '/api/models/owner/name/revision/refs%2Fpr%2F1')
})

await t.test('a repository without folders of versions is version 1', async (t) => {
  const { fetched, failure, files } = await prepare(t)
  await fetched({ uri: 'hf://owner/name/onnx/' })
  t.same(await files(), ['1/model.onnx', '1/model.onnx_data', '1/model_int8.onnx'])
  await fetched({ uri: 'hf://owner/name/onnx/model_int8.onnx' })
  t.same(await files(), ['1/model.onnx'])
  await fetched({ uri: 'hf://owner/name/onnx/model.onnx' })
  t.same(await files(), ['1/model.onnx', '1/model.onnx_data'])
  t.match(await failure({ uri: 'hf://owner/name/onnx/none.onnx' }), {
    reason: 'ARTIFACT_NOT_FOUND',
    message: "'hf://owner/name/onnx/none.onnx' has no files, want a file of a model",
  })
})

await t.test('a download goes on where it was cut, as often as it makes progress', async (t) => {
  const { hub, store, to, fetched } = await prepare(t)
  hub.storeFaults.push(...[1_400_000, 2_800_000, 4_200_000].map(cutAt))
  await fetched({ bounds: { attempts: 2 } })
  t.equal(await readFile(join(to, '1/model.onnx'), 'utf8'), WEIGHTS)
  const [first, ...others] = store.heard.map(({ headers }) => headers.range)
  t.equal(first, undefined)
  const begins = others.map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]))
  t.equal(begins.length, 3)
  t.ok(
    begins.every((begin, i) => begin > i * 1_400_000 && begin <= (i + 1) * 1_400_000),
    String(begins),
  )
})

await t.test('a server that knows no ranges sends all again', async (t) => {
  const { hub, to, fetched } = await prepare(t)
  hub.storeFaults.push(cutAt(1000), (request, response) => {
    delete request.headers.range
    serveRange(request, response, Buffer.from(WEIGHTS))
  })
  await fetched()
  t.equal(await readFile(join(to, '1/model.onnx'), 'utf8'), WEIGHTS)
})

await t.test('other bytes than the listed digest says are not kept', async (t) => {
  const { hub, failure, fetched, to, folder } = await prepare(t)
  const wrong = Buffer.from('W'.repeat(WEIGHTS.length))
  hub.storeFaults.push((request, response) => serveRange(request, response, wrong))
  t.match(await failure(), {
    reason: 'ARTIFACT_MISMATCH',
    message: /^'faces\/1\/model\.onnx' has other bytes than its digest [0-9a-f]{64} says$/,
  })
  t.same(await readdir(folder), [])
  // The second half of another file: it begins anew.
  hub.storeFaults.push(cutAt(2_000_000), (request, response) =>
    serveRange(request, response, wrong),
  )
  t.match(await fetched(), { isFetched: true })
  t.equal(await readFile(join(to, '1/model.onnx'), 'utf8'), WEIGHTS)
})

await t.test('small files are held against their git digest', async (t) => {
  const { hub, failure } = await prepare(t)
  const list = async (request: Parameters<Answer>[0], response: Parameters<Answer>[1]) => {
    const entry = { type: 'file', path: 'faces/config.pbtxt', size: 3, oid: '0'.repeat(40) }
    response.end(JSON.stringify([entry]))
    hub.files.set('faces/config.pbtxt', 'abc')
    void request
  }
  hub.faults.push((_, response) => response.end(JSON.stringify({ sha: hub.commit })), list)
  t.match(await failure(), {
    reason: 'ARTIFACT_MISMATCH',
    message: /config\.pbtxt' has other bytes/,
  })
})

await t.test(
  'pods that share a cache download a file once, and believe its digest alone',
  async (t) => {
    const { folder, fetched, server, store } = await prepare(t)
    const cache = { directory: join(folder, 'cache'), maxBytes: 100_000_000 }
    const { digest } = await fetched({ cache })
    const files = () => server.heard.filter(({ path }) => path.includes('/resolve/')).length
    t.same([files(), store.heard.length], [3, 1])
    t.match(await fetched({ cache, to: join(folder, 'other') }), { digest, isFetched: true })
    t.same([files(), store.heard.length], [3, 1])
    // A pod of the namespace writes what it likes: small files have no SHA-256, but are held against git's.
    const names = await readdir(cache.directory)
    const small = createHash('sha256').update(REPOSITORY['faces/config.pbtxt']).digest('hex')
    const poison = createHash('sha256').update('poison').digest('hex')
    await writeFile(join(cache.directory, `content-${poison}`), 'poison')
    for (const name of names.filter((one) => one.startsWith('name-'))) {
      await writeFile(join(cache.directory, name), poison)
    }
    t.ok(names.includes(`content-${small}`))
    t.match(await fetched({ cache, to: join(folder, 'third') }), { digest, isFetched: true })
    t.same([files(), store.heard.length], [5, 1])
    t.match(await fetched({ cache, to: join(folder, 'fourth') }), { digest, isFetched: true })
    t.same([files(), store.heard.length], [5, 1], 'what was wrong is right again')
  },
)

await t.test('every form of a link to the next page is followed, or the fetch fails', async (t) => {
  const { hub, failure, fetched, server } = await prepare(t)
  const revision: Answer = (_, response) => response.end(JSON.stringify({ sha: hub.commit }))
  const followed = [
    '<?recursive=true&cursor=0>; rel="next"',
    '</api/models/owner/name/tree/x?cursor=0>; rel=next',
    '<https://other.example/x?cursor=0>; title="a, b"; rel="next"',
    '<https://other.example/x?cursor=9>; rel="prev", <https://other.example/x?cursor=0>; REL = "last next"',
  ]
  for (const [i, link] of followed.entries()) {
    hub.commit = String(i).repeat(40)
    hub.faults.push(revision, page(link))
    t.match(await fetched(), { isFetched: true, files: 3 }, link)
    const pages = server.heard.filter(({ path }) => path.includes(`/tree/${hub.commit}`))
    t.match(pages.at(-1)?.path, /\?recursive=true&cursor=0$/, link)
  }
  const broken = [
    '<https://other.example/x?page=2>; rel="next"',
    '<https://other.example/x>; rel="next"',
    '<http://>; rel="next"',
  ]
  hub.commit = 'a'.repeat(40)
  for (const link of broken) {
    hub.faults.push(revision, page(link))
    t.match(await failure({ bounds: { attempts: 1 } }), { reason: 'ARTIFACT_UNAVAILABLE' }, link)
  }
  const [one, two] = ['<?cursor=1>; rel="next"', '<?cursor=2>; rel="next"'].map(page)
  if (one === undefined || two === undefined) return
  for (const pages of [
    [one, one],
    [one, two, one],
  ]) {
    hub.faults.push(revision, ...pages)
    t.match(await failure({ bounds: { attempts: 1 } }), {
      reason: 'ARTIFACT_UNAVAILABLE',
      message: /names a next page without a cursor of its own$/,
    })
  }
  hub.faults.push(revision, page('<https://other.example/x>; rel="nextish"'))
  t.match(await failure({ bounds: { attempts: 1 } }), { reason: 'ARTIFACT_NOT_FOUND' })
})

await t.test('what a Hub may answer wrongly', async (t) => {
  const { hub, failure } = await prepare(t)
  const revision: Answer = (_, response) => response.end(JSON.stringify({ sha: hub.commit }))
  const file = { type: 'file', path: 'faces/a', size: 1, oid: '0'.repeat(40) }
  const cases: readonly (readonly [readonly Answer[], string, RegExp])[] = [
    [[(_, response) => response.end('{}')], 'ARTIFACT_UNAVAILABLE', /answered without a commit/],
    [[revision, (_, response) => response.end('{')], 'ARTIFACT_UNAVAILABLE', /without a list/],
    [[revision, listing({ ...file, path: 'faces/../../x' })], 'ARTIFACT_INVALID', /leads out of/],
    [[revision, listing({ ...file, path: 'faces//etc' })], 'ARTIFACT_INVALID', /no name of a file/],
    [[revision, listing({ ...file, path: 'other/x' })], 'ARTIFACT_INVALID', /none of the files/],
    [[revision, listing({ ...file, oid: 'x' })], 'ARTIFACT_INVALID', /without a digest/],
    [[revision, listing({ ...file, size: -1 })], 'ARTIFACT_INVALID', /without a size/],
    [[revision, listing(file, file)], 'ARTIFACT_INVALID', /it is there twice/],
    [[revision, listing({ ...file, size: 2 ** 40 })], 'ARTIFACT_TOO_LARGE', /want at most/],
    [[revision, listing()], 'ARTIFACT_NOT_FOUND', /has no files, want a model's directory/],
  ]
  for (const [answers, reason, message] of cases) {
    hub.faults.push(...answers)
    t.match(await failure({ bounds: { attempts: 1 } }), { reason, message }, String(message))
  }
})

await t.test('who may not read is told what is missing', async (t) => {
  const { endpoint, failure, hub } = await prepare(t, { token: 'right' })
  t.match(await failure({ credentials: { hub: { endpoint } } }), {
    reason: 'ARTIFACT_DENIED',
    message: /answered 401, Invalid username or password\. \(asked without a token, want HF_TOKEN/,
  })
  const hubOf = (token: string) => ({ hub: { endpoint, token: new SecretText(token) } })
  t.match(await failure({ credentials: hubOf('wrong') }), {
    reason: 'ARTIFACT_DENIED',
    message: /answered 401, Invalid username or password\.$/,
  })
  hub.faults.push(answerStatus(429), answerStatus(503))
  const { signal } = new AbortController()
  const to = join(t.testdir(), 'model')
  const uri = 'hf://owner/name/faces'
  const credentials = hubOf('right')
  t.match(await fetchArtifact({ uri, to, clock, signal, credentials }), { isFetched: true })
})

await t.test('a token leaves only for the Hub', async (t) => {
  const { hub, failure } = await prepare(t, { token: 'hidden' })
  const other = await startArtifactServer(answerStatus(404))
  t.teardown(() => other.close())
  hub.faults.push(answerStatus(302, { location: `${other.origin}/api` }))
  t.match(await failure(), { reason: 'ARTIFACT_NOT_FOUND' })
  t.equal(other.heard[0]?.headers.authorization, undefined)
})
