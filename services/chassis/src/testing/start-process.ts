import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface ProcessOptions {
  /** True for the line, of stdout or stderr, after which the process counts as ready. Absent: at once. */
  readonly readyWhen?: (line: string) => boolean
  /** How long to wait for that line; default 30000. Then the process is killed. */
  readonly readyTimeoutMs?: number
  readonly cwd?: string
  /** The whole environment; that of this process if absent. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** How a process ended; `signal` if one killed it. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/**
 * Starts a program and waits until it is ready. Stop it in the test's teardown.
 *
 * @throws Error with everything it wrote, if it ends or the time is over before it is ready.
 */
export async function startProcess(
  command: string,
  args: readonly string[],
  o: ProcessOptions = {},
): Promise<StartedProcess> {
  const child = spawn(command, [...args], {
    cwd: o.cwd,
    env: o.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  const started = new StartedProcess(child, [command, ...args].join(' '))
  if (o.readyWhen === undefined) return started
  try {
    await within(started.waitForLine(o.readyWhen), o.readyTimeoutMs ?? 30_000, started)
    return started
  } catch (error) {
    await started.stop('SIGKILL')
    throw error
  }
}

async function within(
  ready: Promise<string>,
  limitMs: number,
  started: StartedProcess,
): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(started.failure(`was not ready after ${limitMs} ms`)),
    limitMs,
  )
  try {
    await Promise.race([ready, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

interface LineWaiter {
  readonly fits: (line: string) => boolean
  readonly resolve: (line: string) => void
  readonly reject: (error: Error) => void
}

/** A process that was started. It cannot outlive this one, however this one ends. */
export class StartedProcess {
  readonly pid: number
  /** The lines of stdout and stderr so far. */
  readonly lines: string[] = []
  readonly exited: Promise<ProcessExit>
  readonly #child: ChildProcess
  readonly #title: string
  readonly #waiters = new Set<LineWaiter>()
  #hasEnded = false

  constructor(child: ChildProcess, title: string) {
    if (child.pid === undefined) throw new Error(`${title} has no process id`)
    this.pid = child.pid
    this.#child = child
    this.#title = title
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on('line', (line) => this.#take(line))
    }
    const dismiss = guard(this.pid)
    // Processes that it leaves behind would hold its output open, and 'close' would never come.
    child.once('exit', () => killGroup(this.pid))
    this.exited = new Promise((resolve) => {
      // 'close' comes after the last line, 'exit' may come before it.
      child.once('close', (code, signal) => {
        this.#hasEnded = true
        dismiss()
        for (const waiter of this.#waiters) waiter.reject(this.failure('ended'))
        resolve({ code, signal })
      })
    })
  }

  failure(what: string): Error {
    return new Error(`${this.#title} ${what}; it wrote:\n${this.lines.join('\n')}`)
  }

  /** The next line, or one that has come already, that fits. Rejects if the process ends without it. */
  waitForLine(fits: (line: string) => boolean): Promise<string> {
    const seen = this.lines.find(fits)
    if (seen !== undefined) return Promise.resolve(seen)
    if (this.#hasEnded) return Promise.reject(this.failure('ended'))
    return new Promise((resolve, reject) => {
      this.#waiters.add({ fits, resolve, reject })
    })
  }

  /** Sends a signal to the process alone. */
  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Sends a signal and waits for the end; kills the whole group after `graceMs`. Fine to call again, and after it has ended. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', graceMs = 10_000): Promise<ProcessExit> {
    if (this.#hasEnded) return this.exited
    this.#child.kill(signal)
    const timer = setTimeout(() => killGroup(this.pid), graceMs)
    try {
      return await this.exited
    } finally {
      clearTimeout(timer)
    }
  }

  #take(line: string): void {
    this.lines.push(line)
    for (const waiter of this.#waiters) {
      if (!waiter.fits(line)) continue
      this.#waiters.delete(waiter)
      waiter.resolve(line)
    }
  }
}

/**
 * Kills the process group when this process dies, even by SIGKILL: a shell waits on a pipe that only this process holds,
 * and the end of the pipe wakes it.
 *
 * @returns lets the shell go, when the group has ended.
 */
function guard(pid: number): () => void {
  const script = 'read -r word; [ "$word" = done ] || kill -s KILL -- "-$1"'
  const shell = spawn('/bin/sh', ['-c', script, 'guard', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  shell.unref()
  // The shell may be gone already; then there is nothing to tell it.
  shell.stdin.on('error', () => {})
  return () => shell.stdin.end('done\n')
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // ESRCH: the whole group has ended.
  }
}
