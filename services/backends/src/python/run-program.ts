import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

export interface RunProgramOptions {
  readonly cwd: string
  readonly timeoutMs: number
  /**
   * Signal that stops the program and those that it has started. Without a signal the program is in the process group of this
   * process, where Ctrl-C stops it.
   */
  readonly signal?: AbortSignal | undefined
  /** Called for each line that the program writes to stdout. */
  readonly onLine?: ((line: string) => void) | undefined
}

/** Error of a program that was stopped by its signal or at its time limit. It might have succeeded with more time. */
export class ProgramStopped extends Error {}

/** Characters that are kept of each output: the last ones. */
const KEPT = 2 ** 18

/**
 * Runs a program without input. With a signal, programs that it has started (pip starts some) are stopped with it.
 *
 * @returns the end of its stdout, at most 256 Ki characters.
 * @throws ProgramStopped at the limit or by the signal; Error with `stdout` and `stderr` if the program fails; Error if it cannot
 * be run.
 */
export async function runChildProgram(
  program: string,
  args: readonly string[],
  { cwd, timeoutMs, signal, onLine }: RunProgramOptions,
): Promise<string> {
  if (signal?.aborted === true) throw new ProgramStopped('it was aborted')
  const detached = signal !== undefined
  const child = spawn(program, args, { cwd, detached, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr] = [keepEnd(child.stdout), keepEnd(child.stderr)]
  if (onLine !== undefined) createInterface(child.stdout).on('line', onLine)
  let stopped: string | undefined
  const stop = (why: string) => {
    stopped ??= why
    kill(child, detached)
    // A process that has left the group may hold them open.
    child.stdout.destroy()
    child.stderr.destroy()
  }
  const timer = setTimeout(() => stop(`it took longer than ${timeoutMs / 1000} s`), timeoutMs)
  const abort = () => stop('it was aborted')
  signal?.addEventListener('abort', abort)
  try {
    const ending = await ended(child)
    if (stopped !== undefined) throw new ProgramStopped(stopped)
    if (ending === 0) return stdout()
    const problem = new Error(`it ended with ${ending}`)
    throw Object.assign(problem, { stdout: stdout(), stderr: stderr() })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

/** @returns its exit status, or the signal that ended it. */
function ended(child: ChildProcess): Promise<number | string | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status, signal) => resolve(status ?? signal))
  })
}

function keepEnd(output: Readable): () => string {
  let text = ''
  output.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-KEPT)
  })
  return () => text
}

/** @param isGroup - whether it leads a process group, all of which is killed. */
function kill(child: ChildProcess, isGroup: boolean): void {
  if (child.pid === undefined) return
  try {
    process.kill(isGroup ? -child.pid : child.pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/**
 * Describes in one line why a program failed: its last output, else why it was stopped or could not be run.
 *
 * @param mostLines - most lines of the output, from its end; all of them if absent.
 */
export function whatFailed(error: unknown, mostLines = Number.POSITIVE_INFINITY): string {
  const { stderr = '', stdout = '', message = String(error) } = Object(error)
  const written = [stderr, stdout].find((text) => String(text).trim() !== '') ?? message
  const lines = String(written).split('\n')
  const last = lines.filter((line) => line.trim() !== '').slice(-mostLines)
  return last.join(' ').trim().replaceAll(/\s+/g, ' ').slice(-600)
}
