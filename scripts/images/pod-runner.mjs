import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { atExit } from './at-exit.mjs'

const RUN_IN_ROOT = join(dirname(fileURLToPath(import.meta.url)), 'run-in-root.sh')

/**
 * @typedef {object} PodCommand
 * @property {readonly string[]} command
 * @property {Readonly<Record<string, string>>} [env]
 * @property {readonly { source: string, target: string }[]} [volumes] - read-only.
 */

/**
 * How a command is run as a pod does: read-only root, the numeric user of the image, no capabilities.
 *
 * @param {PodCommand} o
 * @param {{ image: string, user: string }} image
 */
export function dockerCommand({ command: [program, ...args], env = {}, volumes = [] }, image) {
  return [
    'docker',
    'run',
    '--rm',
    '--read-only',
    '--tmpfs',
    '/tmp',
    '--user',
    image.user,
    '--cap-drop',
    'ALL',
    '--security-opt',
    'no-new-privileges',
    '--network',
    'host',
    ...volumes.flatMap(({ source, target }) => ['--volume', `${source}:${target}:ro`]),
    ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
    '--entrypoint',
    program,
    image.image,
    ...args,
  ]
}

/**
 * The same without an engine, as root.
 *
 * @param {PodCommand} o
 * @param {{ root: string, user: string, env: readonly string[] }} image - its unpacked file system and its settings.
 */
export function unshareCommand({ command, env = {}, volumes = [] }, image) {
  return [
    'unshare',
    '--mount',
    '--pid',
    '--fork',
    RUN_IN_ROOT,
    image.root,
    ...image.user.split(':'),
    ...volumes.map(({ source, target }) => `${source}:${target}`),
    '--',
    ...image.env,
    ...Object.entries(env).map(([key, value]) => `${key}=${value}`),
    ...command,
  ]
}

/**
 * A started command.
 *
 * @param {readonly string[]} command - of one of the two above.
 */
export function startPod([program, ...args]) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let written = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      written += text
    })
  }
  const kill = () => {
    // A signal to the program that we have started would leave its pod behind.
    const one = childOf(child.pid)
    if (program === 'docker' || one === undefined) child.kill('SIGTERM')
    else process.kill(one, 'SIGKILL')
  }
  const callOff = atExit(kill)
  let end
  const ended = new Promise((resolve) => {
    const finish = (how) => {
      callOff()
      end = how
      resolve(how)
    }
    child.once('error', (error) => finish(error.message))
    child.once('close', (code, signal) => finish(code ?? signal))
  })
  return {
    /** Its exit code, the signal that ended it, or why it could not be started. */
    ended,
    /** The same, undefined as long as it runs. */
    end: () => end,
    written: () => written,
    /** Process 1 of the pod, as seen from here; undefined once it has ended. */
    processOne: () => childOf(child.pid),
    /** SIGTERM to process 1 alone, as a kubelet does. docker's own program hands it on. */
    terminate() {
      if (program === 'docker') child.kill('SIGTERM')
      else process.kill(childOf(child.pid), 'SIGTERM')
    },
    async close() {
      kill()
      await ended
    },
  }
}

/** @returns {number | undefined} the first child of a process. */
function childOf(pid) {
  return childrenOf(pid)[0]
}

/** @returns {number[]} */
function childrenOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    return text === '' ? [] : text.split(' ').map(Number)
  } catch {
    // The process has just ended.
    return []
  }
}

/**
 * All processes below one, parents first.
 *
 * @returns {{ pid: number, program: string, isZombie: boolean }[]} `program` is as it was called, '' of a zombie: it has ended
 *   and nobody has reaped it.
 */
export function descendantsOf(pid) {
  return childrenOf(pid).flatMap((child) => [
    { pid: child, ...programOf(child) },
    ...descendantsOf(child),
  ])
}

function programOf(pid) {
  try {
    const [program] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return { program, isZombie }
  } catch {
    // It has just been reaped.
    return { program: '', isZombie: false }
  }
}

/** Asks until a condition holds. @throws Error with `what`, after `limitMs`. */
export async function waitFor(what, isTrue, limitMs = 180_000) {
  const until = Date.now() + limitMs
  for (;;) {
    if (await isTrue()) return
    if (Date.now() > until) throw new Error(`waited ${limitMs / 1000} s: ${what}`)
    await sleep(250)
  }
}
