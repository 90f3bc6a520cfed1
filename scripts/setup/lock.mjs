import { createHash } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 200
/** An address of Linux with a name of this length means the same to all versions of Node: those before 24 fill it up with zeros. */
const ADDRESS_BYTES = 108

/**
 * Runs `work` while no other process of this machine holds the lock. It is a listening socket, which ends with its process, however
 * that ends.
 *
 * @param {string} path - names the lock; its folder is made.
 * @template T
 * @param {() => Promise<T> | T} work
 * @param {() => void} [onWait] - called once if another process holds the lock.
 * @param {AbortSignal} [signal] - ends the wait, never the work.
 * @returns {Promise<T>} what the work gave.
 * @throws the signal's reason if it aborts before the work begins.
 */
export async function withLock(path, work, onWait = () => {}, signal) {
  mkdirSync(dirname(path), { recursive: true })
  signal?.throwIfAborted()
  const address = addressOf(resolve(path))
  let hasWaited = false
  let server
  while ((server = await listenAt(address)) === undefined) {
    if (!hasWaited) onWait()
    hasWaited = true
    await sleep(POLL_MS, undefined, { signal }).catch((error) => {
      throw signal?.aborted ? signal.reason : error
    })
  }
  try {
    return await work()
  } finally {
    await new Promise((settle) => server.close(settle))
  }
}

/** Makes the address of a lock: on Linux and Windows a name without a file; elsewhere a file, which a killed process leaves behind. */
function addressOf(path) {
  const name = `tutti-${createHash('sha256').update(path).digest('hex').slice(0, 24)}`
  if (process.platform === 'linux') return `\0${name}`.padEnd(ADDRESS_BYTES, '-')
  return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), name)
}

/** @returns {Promise<import('node:net').Server | undefined>} undefined if another process listens there. */
async function listenAt(address) {
  const server = createServer((socket) => socket.destroy())
  const error = await new Promise((settle) => {
    server.once('error', settle)
    server.listen(address, () => settle(undefined))
  })
  if (error === undefined) return server
  if (error.code !== 'EADDRINUSE') throw error
  if (address.startsWith('/') && !(await answers(address))) rmSync(address, { force: true })
  return undefined
}

function answers(address) {
  return new Promise((settle) => {
    const socket = connect(address, () => settle(true))
    socket.on('connect', () => socket.destroy()).on('error', () => settle(false))
  })
}
