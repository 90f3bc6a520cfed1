import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
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

await test('the lock of a process that has died is taken over', async (t) => {
  const path = join(t.testdir(), 'lock')
  const { pid } = spawnSync(process.execPath, ['--version'])
  writeFileSync(path, String(pid))
  let isDone = false
  await withLock(path, () => {
    isDone = true
  })
  t.equal(isDone, true)
})
