import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 200

/**
 * Runs `work` while no other process holds the lock file. A lock whose process is gone is taken over.
 *
 * @param {string} path - of the lock file; its folder is made.
 * @template T
 * @param {() => Promise<T> | T} work
 * @param {() => void} [onWait] - called once if another process holds the lock.
 * @returns {Promise<T>} what the work gave.
 */
export async function withLock(path, work, onWait = () => {}) {
  mkdirSync(dirname(path), { recursive: true })
  let hasWaited = false
  while (!tryLock(path)) {
    if (!hasWaited) onWait()
    hasWaited = true
    await sleep(POLL_MS)
  }
  const unlock = () => rmSync(path, { force: true })
  // Also when a signal handler ends the process while the work is under way.
  process.once('exit', unlock)
  try {
    return await work()
  } finally {
    process.off('exit', unlock)
    unlock()
  }
}

function tryLock(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
  const holder = readHolder(path)
  // An empty file is one whose holder is just writing its number.
  if (holder !== undefined && !isAlive(holder)) rmSync(path, { force: true })
  return false
}

function readHolder(path) {
  try {
    const holder = Number(readFileSync(path, 'utf8'))
    return Number.isInteger(holder) && holder > 0 ? holder : undefined
  } catch {
    // The holder has just let go.
    return undefined
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it lives and belongs to somebody else.
    return error.code === 'EPERM'
  }
}
