import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { withLock } from './lock.mjs'

/** The number of a process that has ended. */
const deadProcess = () => spawnSync(process.execPath, ['--version']).pid

await test('only one at a time works under a lock', async (t) => {
  const path = join(t.testdir(), 'folder', 'lock')
  const steps = []
  let waits = 0
  const work = (name) => async () => {
    steps.push(`${name} in`)
    await new Promise(setImmediate)
    steps.push(`${name} out`)
  }
  await Promise.all([withLock(path, work('a')), withLock(path, work('b'), () => waits++)])
  t.same(steps, ['a in', 'a out', 'b in', 'b out'])
  t.equal(waits, 1)
  t.equal(existsSync(path), false)
})

await test('who waits for a lock can be stopped, and leaves it alone', async (t) => {
  const path = join(t.testdir(), 'lock')
  const stop = new AbortController()
  await withLock(path, async () => {
    const waiting = withLock(
      path,
      () => t.fail('worked'),
      () => stop.abort(new Error('own')),
      stop.signal,
    )
    await t.rejects(waiting, { message: 'own' })
    t.equal(existsSync(path), true)
  })
  const late = withLock(
    path,
    () => t.fail('worked'),
    () => {},
    stop.signal,
  )
  await t.rejects(late, { message: 'own' }, 'also when nobody holds it')
  t.equal(existsSync(path), false)
})

await test('work that fails lets go of the lock', async (t) => {
  const path = join(t.testdir(), 'lock')
  await t.rejects(
    withLock(path, () => {
      throw new Error('own')
    }),
    { message: 'own' },
  )
  t.equal(existsSync(path), false)
})

const NOW_S = Date.now() / 1000
const LEFT_BEHIND = [
  { which: 'whose process has died', holder: () => String(deadProcess()) },
  {
    // This process lives, and started at another time.
    which: 'whose process has died, and whose number is that of a later one',
    holder: () => `${process.pid} 1`,
  },
  { which: 'without a name that is old', holder: () => '', writtenAt: 1 },
]

for (const { which, holder, writtenAt = NOW_S } of LEFT_BEHIND) {
  await test(`a lock ${which} is taken over`, async (t) => {
    const path = join(t.testdir(), 'lock')
    writeFileSync(path, holder())
    utimesSync(path, writtenAt, writtenAt)
    t.equal(await withLock(path, () => 'done'), 'done')
  })
}

await test('of those that wait for a dead one no two work at once', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'lock')
  writeFileSync(path, `${deadProcess()} 1`)
  const script = `
    import { mkdirSync, rmdirSync } from 'node:fs'
    import { withLock } from ${JSON.stringify(new URL('lock.mjs', import.meta.url).href)}
    // Two at once would make the same folder.
    for (let i = 0; i < 20; i++) {
      await withLock(${JSON.stringify(path)}, async () => {
        mkdirSync(${JSON.stringify(join(folder, 'work'))})
        await new Promise(setImmediate)
        rmdirSync(${JSON.stringify(join(folder, 'work'))})
      })
    }`
  const codes = Array.from({ length: 4 }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script])
    return once(child, 'exit')
  })
  t.same(
    (await Promise.all(codes)).map(([code]) => code),
    [0, 0, 0, 0],
  )
  t.equal(existsSync(`${path}.taken`), false)
})
