import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SecretText, systemClock } from '@tutti/chassis'
import { createTestCertificates } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import {
  type Answer,
  answerStatus,
  cutAfter,
  serveBytes,
  startArtifactServer,
  startTlsArtifactServer,
} from '../testing/artifact-server.ts'
import { tarArchive } from '../testing/tar-archive.ts'
import { type FetchRequest, fetchArtifact, verifyArtifact } from './fetch-artifact.ts'

const sha256 = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`

function archiveOf(weights: string): Buffer {
  return tarArchive([
    { name: 'config.pbtxt', data: 'backend: "b"' },
    { name: '1/model.bin', data: weights.repeat(20_000) },
  ])
}
const ONE = archiveOf('one')
const TWO = archiveOf('two')
const ETAG = '"v1"'

/** Timers that fire at once: what is waited for is noted. */
function hastyClock() {
  const waits: number[] = []
  return {
    waits,
    clock: {
      ...systemClock,
      setTimer: (delayMs: number, callback: () => void) => {
        waits.push(delayMs)
        return systemClock.setTimer(0, callback)
      },
    },
  }
}

/** `cut` ends a connection once the client has kept what came. */
interface Cuts {
  readonly cut: (count: number, bytes: Uint8Array, etag?: string) => Answer
  readonly stored: (position: number) => Promise<void>
}

async function prepare(t: Test, toAnswers: (cuts: Cuts) => readonly Answer[]) {
  const folder = t.testdir()
  const work = join(folder, '.model.fetch')
  const stored = async (position: number): Promise<void> => {
    let size = 0
    while (size < position) {
      const [own = ''] = await readdir(work).catch((): string[] => [])
      size = (await stat(join(work, own, 'archive')).catch(() => undefined))?.size ?? 0
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const cut: Cuts['cut'] = (count, bytes, etag) => cutAfter(count, bytes, etag, stored)
  const server = await startArtifactServer(...toAnswers({ cut, stored }))
  t.teardown(() => server.close())
  const { clock, waits } = hastyClock()
  const to = join(folder, 'model')
  const uri = `${server.origin}/models/yolo.tar`
  const fetched = (o: Partial<FetchRequest> = {}) =>
    fetchArtifact({ uri, to, clock, random: () => 0, signal: new AbortController().signal, ...o })
  const failure = async (o: Partial<FetchRequest> = {}): Promise<unknown> =>
    fetched(o).then(
      () => t.fail('it was fetched'),
      (error: unknown) => error,
    )
  const weights = async () => (await readFile(join(to, '1/model.bin'), 'utf8')).slice(0, 3)
  return { server, folder, to, uri, waits, cut, fetched, failure, weights }
}

await t.test('an archive is fetched, checked, and there at once', async (t) => {
  const { server, folder, to, fetched, weights } = await prepare(t, () => [serveBytes(ONE, ETAG)])
  const digest = sha256(ONE)
  t.same(await fetched({ digest }), { digest, files: 2, bytes: 60_012, isFetched: true })
  t.equal(await weights(), 'one')
  t.same((await readdir(folder)).toSorted(), ['.model.fetched.json', 'model'])
  t.match(server.heard, [{ path: '/models/yolo.tar', headers: { 'accept-encoding': 'identity' } }])
  t.same(await fetched({ digest }), { digest, files: 2, bytes: 60_012, isFetched: false })
  t.equal(server.heard.length, 1, 'what is there with the right digest is not asked for')
  const { digest: tree } = await verifyArtifact(to)
  t.equal(
    tree,
    sha256(
      `${sha256('one'.repeat(20_000)).slice(7)}  1/model.bin\n${sha256('backend: "b"').slice(7)}  config.pbtxt\n`,
    ),
    'as sha256sum prints it',
  )
  await writeFile(join(to, '1/model.bin'), 'broken')
  t.match(await fetched({ digest }), { isFetched: true }, 'what was touched is fetched anew')
  t.equal(await weights(), 'one')
})

await t.test('without a digest the server is asked whether it is still the same', async (t) => {
  const { server, fetched, weights } = await prepare(t, () => [serveBytes(ONE, ETAG)])
  t.match(await fetched(), { digest: sha256(ONE), isFetched: true })
  t.match(await fetched(), { isFetched: false })
  t.equal(server.heard[1]?.headers['if-none-match'], ETAG)
  server.script(serveBytes(TWO, '"v2"'))
  t.match(await fetched(), { digest: sha256(TWO), isFetched: true })
  t.equal(await weights(), 'two')
})

await t.test('a cut download begins anew', async (t) => {
  const { server, fetched, waits } = await prepare(t, ({ cut }) => [
    cut(20_000, ONE, ETAG),
    cut(15_000, TWO),
    serveBytes(ONE, ETAG),
  ])
  const told: string[] = []
  const log = {
    warn: (message: string, fields = {}) => told.push(`${message}: ${Object(fields).error}`),
  }
  t.match(await fetched({ digest: sha256(ONE), log }), { isFetched: true })
  t.equal(server.heard.length, 3)
  t.equal(told.length, 2)
  t.match(
    told[0],
    /^fetch failed, trying again: 'http:\/\/localhost:\d+\/models\/yolo.tar' cannot be read: /,
  )
  t.ok(waits.includes(125), 'half of the first wait, without chance')
})

await t.test('a fetch that failed leaves nothing, and the next one begins anew', async (t) => {
  const { server, folder, fetched, failure } = await prepare(t, ({ cut }) => [
    cut(20_000, ONE, ETAG),
  ])
  t.match(await failure({ bounds: { attempts: 1 } }), { reason: 'ARTIFACT_UNAVAILABLE' })
  t.same(await readdir(folder), [])
  server.script(serveBytes(ONE, ETAG))
  t.match(await fetched({ digest: sha256(ONE) }), { isFetched: true })
})

await t.test('one that is always cut is given up', async (t) => {
  const { server, failure } = await prepare(t, ({ cut }) => [cut(20_000, ONE)])
  t.match(await failure({ bounds: { attempts: 4 } }), { reason: 'ARTIFACT_UNAVAILABLE' })
  t.equal(server.heard.length, 4)
})

await t.test('a partial answer to a request for the whole is refused', async (t) => {
  const part: Answer = (_, response) => {
    const range = `bytes 0-9/${ONE.byteLength}`
    response.writeHead(206, { etag: ETAG, 'content-range': range }).end(ONE.subarray(0, 10))
  }
  const { server, failure, fetched } = await prepare(t, () => [part])
  t.match(await failure({ bounds: { attempts: 1 } }), {
    reason: 'ARTIFACT_UNAVAILABLE',
    message: /yolo.tar' answered 206$/,
  })
  server.script(part, serveBytes(ONE, ETAG))
  t.match(await fetched(), { digest: sha256(ONE) })
})

await t.test('what a status means', async (t) => {
  const cases: readonly (readonly [number, string, number])[] = [
    [401, 'ARTIFACT_DENIED', 1],
    [403, 'ARTIFACT_DENIED', 1],
    [404, 'ARTIFACT_NOT_FOUND', 1],
    [410, 'ARTIFACT_NOT_FOUND', 1],
    [304, 'ARTIFACT_UNAVAILABLE', 1],
    [400, 'ARTIFACT_UNAVAILABLE', 3],
    [416, 'ARTIFACT_UNAVAILABLE', 3],
    [429, 'ARTIFACT_UNAVAILABLE', 3],
    [503, 'ARTIFACT_UNAVAILABLE', 3],
  ]
  for (const [status, reason, asked] of cases) {
    const { server, failure } = await prepare(t, () => [answerStatus(status)])
    const message = new RegExp(`^'http://localhost:\\d+/models/yolo.tar' answered ${status}`)
    t.match(await failure({ bounds: { attempts: 3 } }), { reason, message })
    t.equal(server.heard.length, asked, `${status}`)
  }
})

await t.test('no server answers', async (t) => {
  const { server, failure } = await prepare(t, () => [])
  await server.close()
  t.match(await failure({ bounds: { attempts: 2 } }), {
    reason: 'ARTIFACT_UNAVAILABLE',
    message: /cannot be read: connect ECONNREFUSED|cannot be read: .*ECONNREFUSED/,
  })
})

await t.test('a server that falls silent is given up', async (t) => {
  const { failure } = await prepare(t, () => [
    (_, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('x')
    },
  ])
  t.match(await failure({ bounds: { attempts: 1, stallMs: 50 } }), {
    reason: 'ARTIFACT_UNAVAILABLE',
    message: /no byte came for 50 ms|aborted/,
  })
})

await t.test('it can be stopped', async (t) => {
  const stop = new AbortController()
  const { failure } = await prepare(t, () => [
    (_, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('x', () => stop.abort(new Error('enough')))
    },
  ])
  t.match(await failure({ signal: stop.signal }), { message: 'enough' })
})

await t.test('bounds hold before and while it comes', async (t) => {
  const { failure, server } = await prepare(t, () => [serveBytes(ONE, ETAG)])
  const bounds = { maxBytes: 30_000 }
  const message = /yolo.tar' has more than 30000 bytes, which is the limit$/
  t.match(await failure({ bounds }), { reason: 'ARTIFACT_TOO_LARGE', message })
  server.script((_, response) => {
    response.writeHead(200)
    response.end(ONE)
  })
  t.match(await failure({ bounds }), { reason: 'ARTIFACT_TOO_LARGE', message })
})

await t.test('a bad archive is not kept', async (t) => {
  const { failure, server, folder, fetched } = await prepare(t, () => [
    serveBytes(Buffer.from('nothing'), ETAG),
  ])
  const message = /^'http:\/\/localhost:\d+\/models\/yolo.tar': it is no tar archive/
  t.match(await failure(), { reason: 'ARTIFACT_INVALID', message })
  t.same(await readdir(folder), [])
  server.script(serveBytes(ONE, ETAG))
  t.match(await fetched(), { isFetched: true })
})

await t.test('what lies there and was not fetched is left alone', async (t) => {
  const { to, fetched } = await prepare(t, () => [serveBytes(ONE, ETAG)])
  await mkdir(to)
  t.match(await fetched(), { isFetched: true }, 'an empty folder is taken')
  const { server, to: other, failure: failOther } = await prepare(t, () => [serveBytes(ONE, ETAG)])
  await mkdir(other)
  await writeFile(join(other, 'mine'), 'x')
  t.match(await failOther(), { reason: 'ARTIFACT_NOT_STORED', message: /holds something that was/ })
  t.same(await readdir(other), ['mine'])
  t.same(server.heard, [], 'and nothing is downloaded for nothing')
  t.match(await failOther({ to: join(other, 'mine/model') }), { reason: 'ARTIFACT_NOT_STORED' })
})

await t.test('credentials go to the named server and to no other', async (t) => {
  const other = await startArtifactServer(serveBytes(ONE, ETAG))
  t.teardown(() => other.close())
  const credentials = { authorization: new SecretText('Bearer hidden') }
  const { server, fetched } = await prepare(t, () => [
    answerStatus(302, { location: '/elsewhere' }),
    answerStatus(307, { location: `${other.origin}/signed?signature=hidden` }),
  ])
  t.match(await fetched({ credentials }), { isFetched: true })
  t.same(
    server.heard.map(({ path, headers }) => [path, headers.authorization]),
    [
      ['/models/yolo.tar', 'Bearer hidden'],
      ['/elsewhere', 'Bearer hidden'],
    ],
  )
  t.same(
    other.heard.map(({ headers }) => headers.authorization),
    [undefined],
  )
})

await t.test('redirects that lead nowhere', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['/again', /leads further after 5 redirects$/],
    ['ftp://a/b', /leads to 'ftp:\/\/a\/b', which is not https$/],
    ['http://[', /leads to what is no address$/],
  ]
  for (const [location, message] of cases) {
    const { failure } = await prepare(t, () => [answerStatus(302, { location })])
    t.match(await failure(), { reason: 'ARTIFACT_UNAVAILABLE', message })
  }
})

await t.test('no message has the query of an address', async (t) => {
  const { server, failure } = await prepare(t, () => [answerStatus(403)])
  const refused = await failure({ uri: `${server.origin}/a.tar?signature=hidden#x` })
  t.match(refused, { message: /a.tar' answered 403$/ })
  t.equal(server.heard[0]?.path, '/a.tar?signature=hidden')
  for (const uri of [
    'http://me:hidden@localhost/a.tar',
    'oci://me:hidden@r.example/a:1',
    'hf://me:hidden@owner/name',
    's3://me:hidden@bucket/a',
    'gs://me:hidden@bucket/a',
    'as://me:hidden@account/container/a',
    'ftp://hidden@x/?hidden',
    'pvc://hidden',
  ]) {
    const error = await failure({ uri })
    t.match(error, { reason: 'FLAG_INVALID', details: { field: '--uri' } })
    if (uri.includes('@')) t.notMatch(String(error), 'hidden')
  }
  t.match(await failure({ digest: 'md5:1' }), {
    reason: 'FLAG_INVALID',
    message: '--digest: "md5:1", want sha256: and 64 hex digits in lower case',
  })
})

await t.test('an authority of the secret is trusted, no other', async (t) => {
  const folder = t.testdir()
  const files = await createTestCertificates(folder)
  const [key, cert, ca] = await Promise.all(
    [files.keyFile, files.certFile, files.caFile].map((file) => readFile(file, 'utf8')),
  )
  const server = await startTlsArtifactServer({ key: key ?? '', cert: cert ?? '' }, serveBytes(ONE))
  t.teardown(() => server.close())
  const { fetched, failure } = await prepare(t, () => [answerStatus(500)])
  const uri = `${server.origin}/m.tar`
  t.match(await failure({ uri }), { reason: 'ARTIFACT_UNTRUSTED', code: 'FAILED_PRECONDITION' })
  t.match(await fetched({ uri, credentials: { ca: ca ?? '' } }), { isFetched: true })
  server.script(answerStatus(302, { location: 'http://localhost/m.tar' }))
  const credentials = { ca: ca ?? '' }
  t.match(await failure({ uri: `${uri}?2`, credentials }), { message: /which is not https$/ })
})

await t.test('a folder that cannot be written is no bad line', async (t) => {
  const { folder, failure } = await prepare(t, () => [serveBytes(ONE, ETAG)])
  await writeFile(join(folder, '.model.fetch'), 'in the way')
  t.match(await failure(), { reason: 'ARTIFACT_NOT_STORED', message: /cannot be written: / })
})
