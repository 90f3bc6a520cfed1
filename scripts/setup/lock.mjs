import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startOf } from './process-start.mjs'

const POLL_MS = 200
const OLD_MS = 10_000

/**
 * Runs `work` while no other process holds the lock file. A lock whose process is gone is taken over.
 *
 * @param {string} path - of the lock file; its folder is made.
 * @template T
 * @param {() => Promise<T> | T} work
 * @param {() => void} [onWait] - called once if another process holds the lock.
 * @param {AbortSignal} [signal] - ends the wait, never the work.
 * @returns {Promise<T>} what the work gave.
 * @throws the signal's reason if it aborts before the work begins.
 */
export async function withLock(path, work, onWait = () => {}, signal) {
  mkdirSync(dirname(path), { recursive: true })
  let hasWaited = false
  signal?.throwIfAborted()
  while (!tryLock(path)) {
    if (!hasWaited) onWait()
    hasWaited = true
    await sleep(POLL_MS, undefined, { signal }).catch((error) => {
      throw signal?.aborted ? signal.reason : error
    })
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
    writeFileSync(path, nameOf(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
  const holder = readHolder(path)
  if (holder !== undefined && !isAlive(holder, path)) takeAway(path, holder)
  return false
}

/** The number of a process, and its start where that can be had: numbers come again. */
function nameOf(pid) {
  return [pid, startOf(pid)].filter((part) => part !== undefined).join(' ')
}

/** Removes the lock of a dead holder. One at a time does: else the second would remove the lock of who came first. */
function takeAway(path, holder) {
  const claim = `${path}.taken`
  try {
    mkdirSync(claim)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    if (isOld(claim)) rmSync(claim, { force: true, recursive: true })
    return
  }
  try {
    if (readHolder(path) === holder) rmSync(path, { force: true })
  } finally {
    rmSync(claim, { force: true, recursive: true })
  }
}

/** What the holder has written; undefined if it has just let go. */
function readHolder(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function isAlive(holder, path) {
  const pid = Number(holder.split(' ')[0])
  // It is just writing its name, or was killed at that.
  if (!Number.isInteger(pid) || pid <= 0) return !isOld(path)
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it lives and belongs to somebody else.
    if (error.code !== 'EPERM') return false
  }
  return !holder.includes(' ') || holder === nameOf(pid)
}

/** Older than anything is that takes a moment. */
function isOld(path) {
  try {
    return Date.now() - statSync(path).mtimeMs > OLD_MS
  } catch {
    return false
  }
}
