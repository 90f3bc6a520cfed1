import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ServeError } from '@tutti/errors'
import { onDisk, syncDirectory } from './on-disk.ts'

/** What was fetched, as noted beside it, so that it is not fetched again. */
export interface FetchRecord {
  readonly uri: string
  /** Of the archive, or of the tree if there was none. */
  readonly digest: string
  /** Of the tree as it was published. */
  readonly tree: string
  readonly files: number
  readonly bytes: number
  /** How the server called this state of it: an entity tag, or the digest of a listing; '' if it did not. */
  readonly validator: string
}

/**
 * The place where a model is put together, beside where it will be: on the same file system, so that it appears there at once and
 * whole, and kept after a failure, so that the next attempt goes on. With `--to /models/model` it is `/models/.model.fetch`, and the
 * record is `/models/.model.fetched.json`.
 */
export class WorkFolder {
  readonly target: string
  /** Of the file that a WorkLock is. */
  readonly lockPath: string
  readonly #root: string
  readonly #recordPath: string

  constructor(target: string) {
    this.target = resolve(target)
    const parent = dirname(this.target)
    const name = basename(this.target)
    this.#root = join(parent, `.${name}.fetch`)
    this.#recordPath = join(parent, `.${name}.fetched.json`)
    this.lockPath = join(parent, `.${name}.fetch.lock`)
  }

  /** Where the model's files are gathered. */
  get tree(): string {
    return join(this.#root, 'tree')
  }

  path(name: string): string {
    return join(this.#root, name)
  }

  /** @throws ServeError ARTIFACT_NOT_STORED, also if what lies at the target was not fetched by us. */
  async open(): Promise<void> {
    await onDisk(this.target, () => this.#checkReplaceable())
    await onDisk(this.#root, () => mkdir(this.#root, { recursive: true }))
  }

  async clear(name: string): Promise<void> {
    await onDisk(this.path(name), () => rm(this.path(name), { recursive: true, force: true }))
  }

  /** What lies at the target by an earlier fetch; undefined if nothing does, or nothing is known of it. */
  async record(): Promise<FetchRecord | undefined> {
    return (await exists(this.target)) ? readNote(this.#recordPath, isRecord) : undefined
  }

  /** A note of this work, if it is one. */
  async note<T>(name: string, is: (value: unknown) => value is T): Promise<T | undefined> {
    return readNote(this.path(name), is)
  }

  async writeNote(name: string, value: unknown): Promise<void> {
    await writeWhole(this.path(name), JSON.stringify(value))
  }

  /**
   * Puts a gathered tree where the model belongs, in place of what an earlier fetch put there, and ends the work.
   *
   * @param tree - the folder whose contents are the model's.
   * @throws ServeError ARTIFACT_NOT_STORED, also if what lies there was not fetched by us.
   */
  async publish(tree: string, record: FetchRecord): Promise<void> {
    const { target } = this
    await onDisk(target, async () => {
      await this.#makeRoom()
      // First: a model without a record would be somebody else's to the next fetch, a record without its model is nothing.
      await writeWhole(this.#recordPath, JSON.stringify(record))
      await rename(tree, target)
      await syncDirectory(dirname(target))
      await rm(this.#root, { recursive: true, force: true })
    })
  }

  /** Ends work that nothing came of. */
  async abandon(): Promise<void> {
    await onDisk(this.#root, () => rm(this.#root, { recursive: true, force: true }))
  }

  async #makeRoom(): Promise<void> {
    const { target } = this
    if (!(await exists(target))) return
    await this.#checkReplaceable()
    if ((await readdir(target)).length === 0) {
      await rmdir(target)
      return
    }
    await this.clear('replaced')
    await rename(target, this.path('replaced'))
  }

  async #checkReplaceable(): Promise<void> {
    const { target } = this
    if (!(await exists(target)) || (await readdir(target)).length === 0) return
    if ((await readNote(this.#recordPath, isRecord)) !== undefined) return
    const text = `'${target}' holds something that was not fetched, want a folder that does not exist yet`
    throw new ServeError('ARTIFACT_NOT_STORED', text)
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch {
    // What cannot be looked at shows when it is written.
    return false
  }
}

/** Writes a small file so that it is there whole or not at all. */
async function writeWhole(path: string, text: string): Promise<void> {
  await onDisk(path, async () => {
    await writeFile(`${path}.new`, text, { flush: true })
    await rename(`${path}.new`, path)
  })
}

/** What is no note of ours counts as none: then everything begins anew. */
async function readNote<T>(
  path: string,
  is: (value: unknown) => value is T,
): Promise<T | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return is(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is FetchRecord {
  const { uri, digest, tree, validator } = Object(value)
  return [uri, digest, tree, validator].every((text) => typeof text === 'string')
}
