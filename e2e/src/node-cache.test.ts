import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startArtifactServer, tarArchive } from '@tutti/repository/testing'
import t, { type Test } from 'tap'
import { ROOT, runProgram } from './serving.ts'

const STEP = join(ROOT, 'services/step/dist/main.js')
const ARCHIVE = tarArchive([
  { name: 'config.pbtxt', data: 'backend: "b"' },
  { name: '1/model.bin', data: 'weights'.repeat(100_000) },
])
const DIGEST = `sha256:${createHash('sha256').update(ARCHIVE).digest('hex')}`

async function prepare(t: Test) {
  const folder = t.testdir({ cache: {} })
  const cache = join(folder, 'cache')
  const answers = { bodies: 0 }
  const server = await startArtifactServer(({ headers }, response) => {
    if (headers['if-none-match'] === '"v1"') return response.writeHead(304).end()
    answers.bodies += 1
    response.writeHead(200, { etag: '"v1"', 'content-length': ARCHIVE.byteLength })
    response.write(ARCHIVE.subarray(0, 1000))
    // The others come while the first one downloads.
    return setTimeout(() => response.end(ARCHIVE.subarray(1000)), 300)
  })
  t.teardown(() => server.close())
  let pods = 0
  /** The arguments of a pod's fetch, into a folder of its own. */
  const argsOf = (...more: readonly string[]) => [
    STEP,
    'fetch',
    `--uri=${server.origin}/m.tar`,
    `--to=${join(folder, `pod-${(pods += 1)}`, 'model')}`,
    `--cache=${cache}`,
    '--attempts=1',
    ...more,
  ]
  const fetchIt = async (...more: readonly string[]) => {
    const { code, out, err } = await runProgram(process.execPath, argsOf(...more))
    const to = join(folder, `pod-${pods}`)
    return { code, out, err, to }
  }
  const digest = `--digest=${DIGEST}`
  return { folder, cache, server, answers, argsOf, fetchIt, digest }
}

await t.test('of pods that start at once, one downloads', async (t) => {
  const { folder, answers, fetchIt, digest, cache, server } = await prepare(t)
  const ended = await Promise.all([1, 2, 3, 4].map(() => fetchIt(digest)))
  for (const { code, err } of ended) t.equal(code, 0, err)
  t.equal(answers.bodies, 1)
  const asked = server.heard.length
  t.equal((await fetchIt(digest)).code, 0)
  t.equal(server.heard.length, asked, 'with a digest a later pod asks no server')
  for (const name of (await readdir(folder)).filter((one) => one.startsWith('pod-'))) {
    t.same((await readdir(join(folder, name, 'model'))).toSorted(), ['1', 'config.pbtxt'])
  }
  t.equal((await readdir(cache)).length, 1)
})

await t.test('a wrong digest, and a broken file, harm no other pod', async (t) => {
  const { answers, fetchIt, digest, cache } = await prepare(t)
  const wrong = `--digest=sha256:${'0'.repeat(64)}`
  t.match(await fetchIt(wrong), { code: 14, err: /has sha256:[0-9a-f]{64}, want sha256:0{64}/ })
  t.same(await readdir(cache), [], 'it is not kept')
  t.equal((await fetchIt(digest)).code, 0)
  const [content = ''] = await readdir(cache)
  await writeFile(join(cache, content), 'of a pod that means harm')
  const repaired = await fetchIt(digest)
  t.match(repaired, { code: 0, out: /cached file was broken, downloading it anew/ })
  t.equal(answers.bodies, 3)
})

await t.test(
  'a pod that is killed while it downloads holds the next up, and no more',
  async (t) => {
    const { server, argsOf, fetchIt, digest, cache } = await prepare(t)
    const { promise: begun, resolve } = Promise.withResolvers<void>()
    server.script(
      (_, response) => {
        response.writeHead(200, { 'content-length': ARCHIVE.byteLength })
        response.write(ARCHIVE.subarray(0, 1000), () => resolve())
      },
      (_, response) => {
        response.writeHead(200, { 'content-length': ARCHIVE.byteLength }).end(ARCHIVE)
      },
    )
    const killed = spawn(process.execPath, argsOf(digest))
    await begun
    const gone = new Promise((end) => killed.once('exit', end))
    killed.kill('SIGKILL')
    await gone
    t.match(await readdir(cache), [/^lease-/], 'as it left the folder')
    t.equal((await fetchIt(digest)).code, 0)
    t.equal((await fetchIt(digest)).code, 0)
    t.equal(server.heard.length, 2)
  },
)

await t.test('without a digest, or a folder that can be written, pods start as well', async (t) => {
  const { answers, fetchIt, cache, digest } = await prepare(t)
  t.equal((await fetchIt()).code, 0)
  t.equal((await fetchIt()).code, 0)
  t.equal(answers.bodies, 2, 'the server is asked: it names the state')
  await rm(cache, { recursive: true })
  await writeFile(cache, '')
  const without = await fetchIt(digest)
  t.match(without, { code: 0, out: /cache of downloads cannot be used/ })
})

const hasMounts = await promisify(execFile)('unshare', ['--mount', 'true']).then(
  () => true,
  () => false,
)
await t.test(
  'a full disk harms no pod',
  { skip: hasMounts ? false : 'want rights to mount: root on Linux' },
  async (t) => {
    const { argsOf, cache, digest, folder, answers } = await prepare(t)
    await mkdir(join(folder, 'other'))
    const mount = `mount -t tmpfs -o size=64k tmpfs "${cache}" && ls "${cache}" && exec "$@"`
    const args = ['--mount', 'sh', '-c', mount, 'sh', process.execPath, ...argsOf(digest)]
    const { code, out, err } = await runProgram('unshare', args)
    t.equal(code, 0, err)
    t.match(out, /cache of downloads cannot be used.*ENOSPC|ENOSPC.*cache of downloads/)
    t.equal(answers.bodies, 1)
  },
)
