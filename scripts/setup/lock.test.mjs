import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { withLock } from './lock.mjs'

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
})

await test('a lock of one version of Node holds for the others, which would fill up a shorter name', {
  skip: process.platform !== 'linux' && 'only Linux has such names',
}, async (t) => {
  await withLock(join(t.testdir(), 'lock'), () => {
    const names = readFileSync('/proc/net/unix', 'utf8').match(/@tutti-[0-9a-f]{24}\S*/g)
    t.ok(names.some((name) => name.length === 108))
  })
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
  })
  const late = withLock(
    path,
    () => t.fail('worked'),
    () => {},
    stop.signal,
  )
  await t.rejects(late, { message: 'own' }, 'also when it is free')
})

await test('work that fails lets go of the lock', async (t) => {
  const path = join(t.testdir(), 'lock')
  await t.rejects(
    withLock(path, () => {
      throw new Error('own')
    }),
    { message: 'own' },
  )
})

await test('the lock of a process that is killed is free', async (t) => {
  const path = join(t.testdir(), 'lock')
  const script = `
    import { withLock } from ${JSON.stringify(new URL('lock.mjs', import.meta.url).href)}
    await withLock(${JSON.stringify(path)}, () => new Promise(() => {
      console.log('has it')
      setInterval(() => {}, 1000)
    }))`
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', script])
  await once(holder.stdout, 'data')
  t.equal(
    await withLock(
      path,
      () => 'done',
      () => holder.kill('SIGKILL'),
    ),
    'done',
  )
})
