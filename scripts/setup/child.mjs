import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { delimiter, join } from 'node:path'
import { SetupFailure } from './failure.mjs'
import { showElapsed } from './progress.mjs'

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Runs a program to its end and hands signals on to it.
 *
 * @param {import('node:child_process').SpawnOptions} [options] - stdin is closed, stdout and stderr are ours, unless told. A program
 *   that is `detached` leads a process group: signals go to all of it.
 * @param {(child: import('node:child_process').ChildProcess) => void} [onStart]
 * @returns {Promise<number>} its exit code; 128 + n if signal n ended it.
 */
export async function runChild(command, args, options = {}, onStart = () => {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options })
  onStart(child)
  const handlers = FORWARDED.map((signal) => {
    const forward = () => {
      if (options.detached) return killGroup(child.pid, signal)
      // A terminal sends Ctrl-C to both of us; the child must not take ours for a second one.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    }
    process.on(signal, forward)
    return () => process.off(signal, forward)
  })
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal]))
    })
  } finally {
    for (const stop of handlers) stop()
  }
}

/** Sends a signal to all of a process group, the one of a `detached` program say. */
export function killGroup(pid, signal) {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch (error) {
    // All of it has ended.
    if (error.code !== 'ESRCH') throw error
  }
}

/**
 * Runs a program, and keeps what it writes.
 *
 * @param {(text: string) => void} [onText] - hears it as it comes.
 * @returns {Promise<{ code: number, written: string }>}
 */
export async function runCaptured(command, args, options = {}, onText = () => {}) {
  let written = ''
  const all = { ...options, stdio: ['ignore', 'pipe', 'pipe'] }
  const code = await runChild(command, args, all, ({ stdout, stderr }) => {
    for (const stream of [stdout, stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        written += text
        onText(text)
      })
    }
  })
  return { code, written }
}

/**
 * Runs a program quietly; shows what it wrote only if it fails. While it runs, the time and its last line are shown.
 *
 * @param {Parameters<typeof showElapsed>[1]} [shown]
 * @throws SetupFailure that begins with `what`.
 */
export async function runQuietly(what, command, args, options = {}, shown = {}) {
  let last = ''
  const onText = (text) => {
    last = text.trim().split('\n').at(-1) || last
  }
  const stop = showElapsed(what, { ...shown, detail: () => last })
  const { code, written } = await runCaptured(command, args, options, onText).catch((error) => {
    stop(false)
    throw error
  })
  stop(code === 0)
  if (code !== 0) throw new SetupFailure(`${written}\n${what} failed with exit code ${code}.`)
}

/** Where PATH has a program, in its order. */
export function findInPath(program, env) {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  return folders.map((folder) => join(folder, program)).filter((path) => existsSync(path))
}

/** The first line that a program writes, or undefined if it cannot be run or fails. */
export function firstLine(command, args, env = process.env) {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8', env })
  return status === 0 ? stdout.trim().split('\n')[0] : undefined
}
