import { createHash, randomUUID } from 'node:crypto'
import type { Stats } from 'node:fs'
import {
  copyFile,
  lstat,
  lutimes,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Logger, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { hashFile } from '../tree-files.ts'

/** The content of a file as a fetch knows it before the file is downloaded. */
export type CacheKey =
  | { readonly sha256: string }
  /** The server's name of it: that of an object in a certain state, say. Equal texts stand for equal bytes. */
  | { readonly name: string }

interface CacheOptions {
  readonly directory: string
  /** Bytes of all files together. */
  readonly maxBytes: number
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
}

/** Contents, by their SHA-256. */
const CONTENT = 'content-'
/** Texts with the SHA-256 of what a name stands for. */
const NAME = 'name-'
/** Leases of processes that download. */
const LEASE = 'lease-'
/** Files that are being written. */
const PART = 'part-'
const SHA256 = /^[0-9a-f]{64}$/
const LOOK_MS = 500
const BEAT_MS = 2000
/** A process that has not touched its lease for so long has ended, or stands still: others go on without it. */
const STALE_MS = 15_000
/** Longest wait for another process: 64 GiB at 40 MB/s. One that takes longer may hang, and its lease is touched all the same. */
const LONGEST_WAIT_MS = 1_800_000
/** A file that is being written and was not touched for so long was left behind. */
const LEFT_MS = 3_600_000
const MAX_NAMES = 10_000

/**
 * Downloaded files in a folder that the pods of a node share. It may fail, be full, or vanish at any time: then files are downloaded
 * as without it. What it gives is held against the SHA-256, so that no pod reads what another one has broken.
 */
export class DownloadCache {
  readonly #options: CacheOptions
  #hasFailed = false

  constructor(options: CacheOptions) {
    this.#options = options
  }

  /**
   * Gives a file: copies it from the cache, or downloads and keeps it. While another process downloads the same, this one waits for
   * it.
   *
   * @param file.path - where the file is wanted, and where `download` puts it.
   * @returns whether it came from the cache.
   * @throws the errors of `download`, the signal's reason; none of the cache's own.
   */
  async share(
    key: CacheKey,
    file: {
      readonly path: string
      readonly signal: AbortSignal
      download(): Promise<void>
    },
  ): Promise<boolean> {
    if (await this.take(key, file.path)) return true
    const lease = await this.#lease(key, file.signal)
    try {
      // The one before may have downloaded it.
      if (lease.hasWaited && (await this.take(key, file.path))) return true
      await file.download()
      await this.keep(key, file.path)
      return false
    } finally {
      await lease.release()
    }
  }

  /** Keeps a copy of a file. */
  async keep(key: CacheKey, path: string): Promise<void> {
    await this.#try(() => this.#put(key, path))
  }

  /** Copies a file from the cache. @returns whether it was there, with the right bytes. */
  async take(key: CacheKey, path: string): Promise<boolean> {
    return (await this.#try(() => this.#take(key, path))) ?? false
  }

  async #take(key: CacheKey, path: string): Promise<boolean> {
    const sha256 = await this.#digestOf(key)
    if (sha256 === undefined) return false
    const content = this.#path(CONTENT, sha256)
    // Neither a link nor a pipe of a pod that means harm.
    if ((await statOf(content))?.isFile() !== true) return false
    try {
      await copyFile(content, path)
    } catch (error) {
      // Another process has just made room.
      if (Object(error).code === 'ENOENT') return false
      throw error
    }
    if ((await hashFile(path)) === sha256) {
      await touch(content, this.#options.clock)
      return true
    }
    await rm(path, { force: true })
    await rm(content, { force: true })
    this.#options.log.warn('cached file was broken, downloading it anew', { content: sha256 })
    return false
  }

  async #digestOf(key: CacheKey): Promise<string | undefined> {
    if ('sha256' in key) return key.sha256
    const path = this.#path(NAME, digestOf(key.name))
    const found = await statOf(path)
    if (found?.isFile() !== true || found.size !== 64) return undefined
    const text = await readFile(path, 'utf8')
    return SHA256.test(text) ? text : undefined
  }

  async #put(key: CacheKey, path: string): Promise<void> {
    const { size } = await stat(path)
    await mkdir(this.#options.directory, { recursive: true })
    if (!(await this.#makeRoom(size))) return
    const sha256 = 'sha256' in key ? key.sha256 : await hashFile(path)
    const part = this.#path(PART, randomUUID())
    try {
      await copyFile(path, part)
      await rename(part, this.#path(CONTENT, sha256))
      if ('name' in key) {
        await writeFile(part, sha256)
        await rename(part, this.#path(NAME, digestOf(key.name)))
      }
    } finally {
      await rm(part, { force: true })
    }
  }

  /** Deletes what was not used for the longest time, until there is room. @returns whether there is. */
  async #makeRoom(bytes: number): Promise<boolean> {
    const { maxBytes, clock } = this.#options
    if (bytes > maxBytes) return false
    const files = await this.#list()
    const isLeft = (file: CachedFile): boolean =>
      file.name.startsWith(PART) && clock.epochMs() - file.usedMs > LEFT_MS
    const kept = files.filter(({ name }) => name.startsWith(CONTENT) || name.startsWith(PART))
    const names = files.filter(({ name }) => name.startsWith(NAME))
    let total = kept.reduce((sum, file) => sum + file.bytes, bytes)
    for (const file of kept) {
      const isOver = total > maxBytes && file.name.startsWith(CONTENT)
      if (!isOver && !isLeft(file)) continue
      await rm(join(this.#options.directory, file.name), { force: true })
      total -= file.bytes
    }
    for (const { name } of names.slice(0, Math.max(0, names.length - MAX_NAMES))) {
      await rm(join(this.#options.directory, name), { force: true })
    }
    return total <= maxBytes
  }

  /** Lists the files, those first that were not used for the longest time. */
  async #list(): Promise<readonly CachedFile[]> {
    const { directory } = this.#options
    const files: CachedFile[] = []
    for (const name of await readdir(directory)) {
      const found = await statOf(join(directory, name))
      if (found !== undefined) files.push({ name, bytes: found.size, usedMs: found.mtimeMs })
    }
    return files.toSorted((a, b) => a.usedMs - b.usedMs)
  }

  /** Waits until no other process downloads the same. A lease only saves downloads: two at once do no harm. */
  async #lease(key: CacheKey, signal: AbortSignal): Promise<Lease> {
    const { clock, log } = this.#options
    const path = this.#path(LEASE, digestOf(JSON.stringify(key)))
    const beganMs = clock.now()
    let beat: number | undefined
    let seenMs = beganMs
    for (let hasWaited = false; ; hasWaited = true) {
      signal.throwIfAborted()
      const made = await writeFile(path, '', { flag: 'wx' }).then(
        () => '',
        (error: unknown) => String(Object(error).code),
      )
      if (made === '') return this.#hold(path, hasWaited)
      // A cache that cannot be written has no leases.
      if (made !== 'EEXIST') return withoutLease(hasWaited)
      const { mtimeMs } = (await statOf(path)) ?? {}
      if (mtimeMs !== beat) {
        beat = mtimeMs
        seenMs = clock.now()
      } else if (clock.now() - seenMs > STALE_MS) {
        const isGone = await rm(path, { force: true }).then(
          () => true,
          // Another user's in a folder that is sticky, say, or a folder that somebody has put there.
          () => false,
        )
        if (!isGone) return withoutLease(hasWaited)
      }
      if (clock.now() - beganMs > LONGEST_WAIT_MS) return withoutLease(hasWaited)
      if (!hasWaited) log.warn('waiting for another download of the same file', { lease: path })
      await sleep(LOOK_MS, { clock, signal })
    }
  }

  #hold(path: string, hasWaited: boolean): Lease {
    const { clock } = this.#options
    const beat = (): void => {
      void touch(path, clock)
      dismiss = clock.setTimer(BEAT_MS, beat)
    }
    let dismiss = clock.setTimer(BEAT_MS, beat)
    const release = async (): Promise<void> => {
      dismiss()
      // One that stays is soon stale.
      await rm(path, { force: true }).catch(() => {})
    }
    return { hasWaited, release }
  }

  /** Runs what may fail, and logs the first failure. */
  async #try<T>(act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act()
    } catch (error) {
      const { directory, log } = this.#options
      const fields = { directory, error: ServeError.from(error).message }
      if (!this.#hasFailed) log.warn('cache of downloads cannot be used', fields)
      this.#hasFailed = true
      return undefined
    }
  }

  #path(kind: string, name: string): string {
    return join(this.#options.directory, `${kind}${name}`)
  }
}

interface Lease {
  /** True if another process had it. */
  readonly hasWaited: boolean
  release(): Promise<void>
}

interface CachedFile {
  readonly name: string
  readonly bytes: number
  readonly usedMs: number
}

function withoutLease(hasWaited: boolean): Lease {
  return { hasWaited, release: () => Promise.resolve() }
}

/** @returns undefined for a file that is not there or cannot be seen: the cache does without it. */
async function statOf(path: string): Promise<Stats | undefined> {
  return await lstat(path).catch(() => undefined)
}

/** Sets the time of use. If the file is another user's, or gone, nothing depends on it: it may be deleted earlier. */
async function touch(path: string, clock: Clock): Promise<void> {
  const now = new Date(clock.epochMs())
  await lutimes(path, now, now).catch(() => {})
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
