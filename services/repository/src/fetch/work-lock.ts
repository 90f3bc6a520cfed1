import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Clock, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { onDisk } from './on-disk.ts'

/** How often the holder writes that it lives. */
const BEAT_MS = 2000
/** How long a lock stands still before it counts as left behind: more than a process without processor time takes. */
const LEFT_BEHIND_MS = 15_000

export interface WorkLockOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Somebody else has it: called once. */
  waiting?(): void
}

/**
 * Keeps two processes from gathering into one work folder, be they on one machine or on two that share a volume. It is a file that
 * its holder changes again and again. Whoever waits compares what it reads with its own clock, so that clocks may differ, and
 * needs nothing of the other: process numbers mean nothing across containers, and Node has no lock of the file system.
 */
export class WorkLock {
  readonly #path: string
  readonly #token = randomUUID()
  readonly #clock: Clock
  readonly #lost = new AbortController()
  #beats = 0
  #beat: Promise<void> = Promise.resolve()
  #stopTimer: () => void = () => {}
  #isReleased = false

  /** True if somebody else had it first: what lies at the target may be new. */
  hasWaited = false

  private constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
  }

  /**
   * Waits until nobody else has the lock.
   *
   * @throws ServeError ARTIFACT_NOT_STORED; the signal's reason if it aborts.
   */
  static async take(path: string, o: WorkLockOptions): Promise<WorkLock> {
    const lock = new WorkLock(path, o.clock)
    await onDisk(path, () => mkdir(dirname(path), { recursive: true }))
    while (!(await lock.#make())) {
      if (!lock.hasWaited) o.waiting?.()
      lock.hasWaited = true
      await lock.#outwait(o)
    }
    lock.#beatLater()
    return lock
  }

  /** Aborts if another process took over, because this one stood still for so long. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  async release(): Promise<void> {
    this.#isReleased = true
    this.#stopTimer()
    await this.#beat
    if (await this.#isOurs()) await onDisk(this.#path, () => rm(this.#path, { force: true }))
  }

  /** @returns false if somebody else has it. */
  async #make(): Promise<boolean> {
    try {
      await writeFile(this.#path, this.#text, { flag: 'wx' })
    } catch (error) {
      if (isCode(error, 'EEXIST')) return false
      return await onDisk(this.#path, () => Promise.reject(error))
    }
    if (!this.hasWaited) return true
    // Of two who found it left behind, the second may have deleted what the first had made just then.
    await sleep(BEAT_MS, { clock: this.#clock })
    return await this.#isOurs()
  }

  /** Resolves when there is no lock any more, one that was left behind included. */
  async #outwait({ clock, signal }: WorkLockOptions): Promise<void> {
    let seen = await read(this.#path)
    let since = clock.now()
    while (seen !== undefined && clock.now() - since < LEFT_BEHIND_MS) {
      await sleep(BEAT_MS, { clock, signal })
      const now = await read(this.#path)
      if (now === seen) continue
      seen = now
      since = clock.now()
    }
    if (seen === undefined || (await read(this.#path)) !== seen) return
    await onDisk(this.#path, () => rm(this.#path, { force: true }))
  }

  #beatLater(): void {
    if (this.#isReleased || this.#lost.signal.aborted) return
    this.#stopTimer = this.#clock.setTimer(BEAT_MS, () => {
      this.#beat = this.#beatOnce().finally(() => this.#beatLater())
    })
  }

  async #beatOnce(): Promise<void> {
    if (!(await this.#isOurs())) {
      const text = `'${this.#path}' is another fetch's now: this one stood still for too long`
      this.#lost.abort(new ServeError('ARTIFACT_NOT_STORED', text))
      return
    }
    this.#beats += 1
    // If it cannot be written, others take it for left behind, and the next beat finds that.
    await writeFile(this.#path, this.#text).catch(() => {})
  }

  get #text(): string {
    return `${this.#token} ${this.#beats}\n`
  }

  async #isOurs(): Promise<boolean> {
    return (await read(this.#path))?.startsWith(this.#token) === true
  }
}

/** @returns undefined if there is none. */
async function read(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    return await onDisk(path, () => Promise.reject(error))
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
