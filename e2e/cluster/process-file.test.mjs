import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { firstChild, killProcess, livingProcess, saveProcess } from './process-file.mjs'

const POLL_MS = 5

const skip = process.platform !== 'linux' && 'there is no /proc'

async function startSleeper(t) {
  // One that is its parent's only child, as process 1 of namespaces is.
  const child = spawn('sh', ['-c', 'sleep 600; exit 3'], { detached: true, stdio: 'ignore' })
  t.teardown(() => {
    const hasEnded = child.exitCode !== null || child.signalCode !== null
    if (!hasEnded && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  })
  await once(child, 'spawn')
  // The shell takes its time to start it.
  while (firstChild(child.pid) === undefined) await sleep(POLL_MS)
  return child
}

await test('a process is ended by its first child', { skip }, async (t) => {
  const path = join(t.testdir(), 'process.json')
  const child = await startSleeper(t)
  saveProcess(path, child.pid)
  t.equal(livingProcess(path), child.pid)
  const ended = once(child, 'exit')
  await killProcess(path)
  t.same(await ended, [3, null])
  t.notOk(existsSync(path))
})

await test('another process with the same number is left alone', { skip }, async (t) => {
  const path = join(t.testdir(), 'process.json')
  const child = await startSleeper(t)
  saveProcess(path, child.pid)
  const saved = JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(path, JSON.stringify({ ...saved, startedAt: `${saved.startedAt}0` }))
  t.equal(livingProcess(path), undefined)
  await killProcess(path)
  t.equal(child.exitCode, null)
  t.notOk(existsSync(path))
})

await test('one that has ended, or was never noted, needs no end', { skip }, async (t) => {
  const path = join(t.testdir(), 'process.json')
  t.equal(livingProcess(path), undefined)
  await killProcess(path)
  writeFileSync(path, '{"pid": 1')
  await killProcess(path)
  t.notOk(existsSync(path))
})
