import { createHash } from 'node:crypto'
import { utimesSync } from 'node:fs'
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { type CacheKey, DownloadCache } from './download-cache.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

function prepare(t: Test, o: { readonly maxBytes?: number; readonly clock?: Clock } = {}) {
  const folder = t.testdir({ cache: {}, pod: {} })
  const directory = join(folder, 'cache')
  const logged: string[] = []
  const log = { warn: (message: string) => logged.push(message) }
  const open = () =>
    new DownloadCache({
      directory,
      maxBytes: o.maxBytes ?? 1000,
      clock: o.clock ?? systemClock,
      log,
    })
  let downloads = 0
  /** Shares a text as a pod does. */
  const share = async (text: string, key: CacheKey = { sha256: sha256(text) }, cache = open()) => {
    const path = join(folder, 'pod', sha256(text + String(downloads)))
    const { signal } = new AbortController()
    const download = async (): Promise<void> => {
      downloads += 1
      await writeFile(path, text)
    }
    const isCached = await cache.share(key, { path, signal, download })
    t.equal(await readFile(path, 'utf8'), text)
    return isCached
  }
  const contents = async () => {
    const names = await readdir(directory)
    return names.filter((name) => name.startsWith('content-')).toSorted()
  }
  /** Makes a content look as if it had been used at a time, in seconds. */
  const use = async (text: string, atS: number) =>
    await utimes(join(directory, `content-${sha256(text)}`), atS, atS)
  return { folder, directory, logged, open, share, contents, use, downloads: () => downloads }
}

await t.test('what one has downloaded, others copy', async (t) => {
  const { share, contents, directory, downloads } = prepare(t)
  t.equal(await share('weights'), false)
  t.equal(await share('weights'), true)
  const name = { name: '["s3://b/k","etag",7]' }
  t.equal(await share('weights', name), false)
  t.equal(await share('weights', name), true)
  t.equal(downloads(), 2)
  t.same(await contents(), [`content-${sha256('weights')}`], 'equal bytes are kept once')
  t.same(
    (await readdir(directory)).filter((file) => /^(lease|part)-/.test(file)),
    [],
  )
})

await t.test('what was broken, or put there by others, is downloaded anew', async (t) => {
  const { share, directory, folder, logged, contents } = prepare(t)
  await share('weights')
  const content = join(directory, `content-${sha256('weights')}`)
  await writeFile(content, 'poison')
  t.equal(await share('weights'), false)
  t.same(logged, ['cached file was broken, downloading it anew'])
  t.equal(await share('weights'), true)
  await rm(content)
  await writeFile(join(folder, 'secret'), 'weights')
  await symlink(join(folder, 'secret'), content)
  t.equal(await share('weights'), false, 'no link is followed')
  t.ok((await stat(content)).isFile())
  const name = { name: 'n' }
  await share('text', name)
  const named = (await readdir(directory)).find((file) => file.startsWith('name-')) ?? ''
  for (const wrong of ['', 'x'.repeat(64), '../../secret'.padEnd(64, ' '), sha256('nothing')]) {
    await writeFile(join(directory, named), wrong)
    t.equal(await share('text', name), false, wrong)
  }
  t.equal((await contents()).length, 2)
})

await t.test('it stays within its bytes, and keeps what was used last', async (t) => {
  const { share, contents, use, directory } = prepare(t, { maxBytes: 10 })
  await share('aaaa')
  await share('bbbb')
  await use('aaaa', 1000)
  await use('bbbb', 2000)
  t.equal(await share('aaaa'), true, 'a use counts')
  await share('cccc')
  t.same(await contents(), ['aaaa', 'cccc'].map((text) => `content-${sha256(text)}`).toSorted())
  await share('more than ten')
  t.equal((await contents()).length, 2, 'what is larger than all is not kept')
  const left = join(directory, 'part-left')
  await writeFile(left, 'dddd')
  await share('eeee')
  t.same(await contents(), [`content-${sha256('eeee')}`], 'what others are writing counts')
  await utimes(left, 1000, 1000)
  await share('ffff')
  t.notOk((await readdir(directory)).includes('part-left'), 'what a killed process left goes')
  t.equal((await contents()).length, 2)
})

await t.test('those who want the same at once wait for the one that downloads', async (t) => {
  const { open, folder, downloads, share } = prepare(t)
  const { signal } = new AbortController()
  const key = { sha256: sha256('weights') }
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const path = join(folder, 'pod/first')
  const download = async (): Promise<void> => {
    begin()
    await ended
    await writeFile(path, 'weights')
  }
  const first = open().share(key, { path, signal, download })
  await begun
  const others = [share('weights'), share('weights'), share('weights')]
  const stop = new AbortController()
  const stopped = open().share(key, { path: `${path}-2`, signal: stop.signal, download })
  stop.abort(new Error('stopped'))
  await t.rejects(stopped, { message: 'stopped' })
  end()
  t.equal(await first, false)
  t.same(await Promise.all(others), [true, true, true])
  t.equal(downloads(), 0)
})

const failing = () => Promise.reject(new Error('no server'))

await t.test('a failed download leaves its place to the next', async (t) => {
  const { open, folder, share } = prepare(t)
  const { signal } = new AbortController()
  const key = { sha256: sha256('weights') }
  await t.rejects(open().share(key, { path: join(folder, 'pod/x'), signal, download: failing }), {
    message: 'no server',
  })
  t.equal(await share('weights'), false)
})

/** A clock that a wait moves on at once. @param tick - is called with each wait. */
function fastClock(tick: () => void = () => {}) {
  let nowMs = 0
  const clock: Clock = {
    ...systemClock,
    now: () => nowMs,
    setTimer: (delayMs, callback) => {
      nowMs += delayMs
      tick()
      return systemClock.setTimer(0, callback)
    },
  }
  return { clock, now: () => nowMs }
}

await t.test('a lease that cannot be deleted holds no download up for long', async (t) => {
  const { clock, now } = fastClock()
  const { directory, share } = prepare(t, { clock })
  const key = { sha256: sha256('weights') }
  const lease = join(directory, `lease-${sha256(JSON.stringify(key))}`)
  await mkdir(lease)
  t.equal(await share('weights', key), false)
  t.ok(now() >= 15_000 && now() < 30_000, String(now()))
  t.equal(await share('weights', key), true, 'and the file is kept')
})

await t.test('a download that does not end holds others up for half an hour', async (t) => {
  let beats = 0
  let lease = ''
  const { clock, now } = fastClock(() => utimesSync(lease, ++beats, beats))
  const { directory, share, logged } = prepare(t, { clock })
  const key = { sha256: sha256('weights') }
  lease = join(directory, `lease-${sha256(JSON.stringify(key))}`)
  await writeFile(lease, '')
  t.equal(await share('weights', key), false)
  t.ok(now() >= 1_800_000 && now() < 1_810_000, String(now()))
  t.same(logged, ['waiting for another download of the same file'])
  t.ok((await stat(lease)).isFile(), 'the lease of the other one stays')
})

await t.test('who was killed while it downloaded holds others up for seconds', async (t) => {
  const { clock, now } = fastClock()
  const { directory, share } = prepare(t, { clock })
  const key = { sha256: sha256('weights') }
  const lease = join(directory, `lease-${sha256(JSON.stringify(key))}`)
  await writeFile(lease, '')
  t.equal(await share('weights', key), false)
  t.ok(now() >= 15_000 && now() < 30_000, String(now()))
  await t.rejects(stat(lease), { code: 'ENOENT' })
})

await t.test('without a folder, or one that cannot be written, it downloads', async (t) => {
  const { share, directory, logged, downloads, open } = prepare(t)
  await rm(directory, { recursive: true })
  t.equal(await share('weights'), false)
  t.equal(await share('weights'), true, 'it makes the folder')
  await rm(directory, { recursive: true })
  await writeFile(directory, 'no folder')
  const cache = open()
  t.equal(await share('weights', undefined, cache), false)
  t.equal(await share('weights', undefined, cache), false)
  t.equal(downloads(), 3)
  t.same(logged, ['cache of downloads cannot be used'], 'it is said once')
  await rm(directory)
  await mkdir(directory)
  await chmod(directory, 0o555)
  t.equal(await share('weights'), false)
})
