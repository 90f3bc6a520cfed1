import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import {
  type Clock,
  type Logger,
  type OpenTransfer,
  silentLogger,
  systemClock,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { following, persist } from '../fetch/attempts.ts'
import { Bucket, type BucketApi } from '../fetch/bucket.ts'
import { fetchBucket } from '../fetch/fetch-bucket.ts'
import { FETCH_BOUNDS, type FetchContext } from '../fetch/fetch-options.ts'
import { pathProblem } from '../fetch/tree-plan.ts'
import { WorkFolder } from '../fetch/work-folder.ts'
import type { RepositoryUri } from '../repository-uri.ts'
import type { CloudIdentity } from './cloud-tokens.ts'
import { bucketOpener, type OpenBucket } from './open-bucket.ts'

export interface MirrorOptions {
  /** Environment of the process, with the credentials. They are read anew each time, so that changes take effect. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock?: Clock
  /** Clouds' libraries for credentials of gs:// and as://; without them, credentials that need a library are refused. */
  readonly identity?: CloudIdentity | undefined
  readonly log?: Pick<Logger, 'warn'>
  /** Opens the transfer that shows the progress of a model's copy. */
  readonly openTransfer?: OpenTransfer | undefined
  /** Directory in which the copy's folder is made; the system's directory for temporary files if absent. */
  readonly temporaryDirectory?: string
}

/** The context that a look at the bucket works with. */
interface Look {
  /** Folder of the copy. */
  readonly root: string
  readonly context: FetchContext
  readonly api: BucketApi
}

/** A model's copy, as it was made. */
interface Copy {
  /** Validator of the listing. */
  readonly validator: string
  /** Paths of the files in the folder, relative to it. */
  readonly files: readonly string[]
}

/** A poll or a client tries again, so a load need not wait longer. */
const BOUNDS = { ...FETCH_BOUNDS, attempts: 3 }

/**
 * A model repository in a bucket, as a private folder with a copy of it. A model is copied when it is asked for, whole or not at
 * all, and again only if its listing has changed. The bucket is never written.
 */
export class RepositoryMirror {
  readonly #at: RepositoryUri
  readonly #options: MirrorOptions
  readonly #clock: Clock
  readonly #open: OpenBucket
  readonly #stop = new AbortController()
  /** Source of the copy in each model's folder, by model. */
  readonly #copied = new Map<string, Copy>()
  /** The last look at each model: looks at one go one after the other. */
  readonly #looks = new Map<string, Promise<void>>()
  #root: Promise<string> | undefined
  #listing: { readonly atMs: number; readonly root: Promise<string> } | undefined

  constructor(at: RepositoryUri, o: MirrorOptions) {
    this.#at = at
    this.#options = o
    this.#clock = o.clock ?? systemClock
    this.#open = bucketOpener(at, { env: o.env, clock: this.#clock, identity: o.identity })
  }

  /** Address of the repository, as it was written. */
  get uri(): string {
    return this.#at.uri
  }

  /**
   * Lists the models of the bucket, and makes an empty folder in the copy for each new one.
   *
   * @param maxAgeMs - age up to which an earlier list is used, in milliseconds.
   * @returns the path of the copy's folder.
   * @throws ServeError REPOSITORY_UNREADABLE
   */
  async list(maxAgeMs = 0): Promise<string> {
    const now = this.#clock.now()
    if (this.#listing !== undefined && now - this.#listing.atMs < maxAgeMs) {
      return await this.#listing.root
    }
    const listing = { atMs: now, root: this.#list() }
    this.#listing = listing
    try {
      return await listing.root
    } catch (error) {
      if (this.#listing === listing) this.#listing = undefined
      throw error
    }
  }

  /** Updates the copy of one model from the bucket. @param name - the model's folder. @returns as `list`. @throws as `list`. */
  async refresh(name: string): Promise<string> {
    return await this.#reading(async (at) => {
      const look = async (): Promise<void> => this.#copy(name, at)
      const done = (this.#looks.get(name) ?? Promise.resolve()).then(look, look)
      this.#looks.set(name, done)
      await done.finally(() => {
        if (this.#looks.get(name) === done) this.#looks.delete(name)
      })
    })
  }

  /** Aborts all requests to the bucket; `list` and `refresh` fail from then on. */
  abandon(): void {
    this.#stop.abort(new ServeError('CANCELLED', 'the repository is closed'))
  }

  /** Aborts all requests to the bucket, and deletes the copy. */
  async close(): Promise<void> {
    this.abandon()
    await Promise.allSettled(this.#looks.values())
    const root = await this.#root?.catch(() => undefined)
    if (root !== undefined) await rm(root, { recursive: true, force: true }).catch(() => {})
  }

  async #list(): Promise<string> {
    return await this.#reading(async ({ root, context, api }) => {
      const names = await persist(context, new Set(), () =>
        new Bucket(api, context).folders(this.#at.prefix),
      )
      const models = new Set([...names].filter((name) => pathProblem(name) === undefined))
      for (const name of models) await mkdir(join(root, name), { recursive: true })
      const there = (await readdir(root)).filter((name) => !name.startsWith('.'))
      for (const name of there) if (!models.has(name)) await this.#remove(root, name)
    })
  }

  async #copy(name: string, { root, context, api }: Look): Promise<void> {
    const prefix = `${this.#at.prefix}${name}/`
    const uri = `${this.#at.uri.replace(/\/+$/, '')}/${name}`
    const work = new WorkFolder(join(root, name))
    const { openTransfer } = this.#options
    try {
      const copy = this.#copied.get(name)
      // Programs that clean temporary folders take a file here and one there.
      const isTorn = copy !== undefined && !(await isWhole(work, copy))
      if (isTorn) await this.#remove(root, name)
      await work.open()
      const validator = isTorn ? '' : (copy?.validator ?? '')
      const source = { prefix, open: (attempt: FetchContext) => new Bucket(api, attempt) }
      const options = { work, uri, digest: undefined, validator }
      const fetched = await following(openTransfer, uri, async (transfer, done) => {
        const all = { ...options, context: { ...context, transfer }, done }
        return { found: await persist(context, done, () => fetchBucket(source, all)), done }
      })
      const { found, done } = fetched
      if (found === undefined) return
      const record = { uri, digest: '', tree: '', files: done.size, bytes: 0 }
      await work.publish(found.root, { ...record, validator: found.validator })
      const files = [...done].map((path) => relative(found.root, path))
      this.#copied.set(name, { validator: found.validator, files })
    } catch (error) {
      if (ServeError.from(error).reason !== 'ARTIFACT_NOT_FOUND') throw error
      await this.#remove(root, name)
    } finally {
      await work.close()
    }
  }

  async #remove(root: string, name: string): Promise<void> {
    this.#copied.delete(name)
    await rm(join(root, name), { recursive: true, force: true })
  }

  async #reading(read: (at: Look) => Promise<void>): Promise<string> {
    const { log = silentLogger, temporaryDirectory = tmpdir() } = this.#options
    try {
      this.#stop.signal.throwIfAborted()
      this.#root = this.#folder(this.#root, temporaryDirectory)
      const root = await this.#root
      const { signal } = this.#stop
      const context = { credentials: {}, clock: this.#clock, log, signal, bounds: BOUNDS }
      await read({ root, context, api: await this.#open(context) })
      return root
    } catch (error) {
      const text = `model repository '${this.#at.uri}' cannot be read: ${ServeError.from(error).message}`
      throw new ServeError('REPOSITORY_UNREADABLE', text, { cause: error })
    }
  }

  /** Returns the copy's folder, which is made anew if something deleted it. */
  async #folder(before: Promise<string> | undefined, place: string): Promise<string> {
    const root = await before?.catch(() => undefined)
    if (root !== undefined && existsSync(root)) return root
    this.#copied.clear()
    // For this user alone.
    return await mkdtemp(join(place, 'tutti-repository-'))
  }
}

/** Tells whether everything is there, the record of the fetch too. */
async function isWhole(work: WorkFolder, { files }: Copy): Promise<boolean> {
  if ((await work.record()) === undefined) return false
  const there = new Set(await readdir(work.target, { recursive: true }))
  return files.every((file) => there.has(file))
}
