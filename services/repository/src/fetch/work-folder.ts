import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ServeError } from '@tutti/errors'

/** The record of a fetch. It stands beside the model's directory, so that a later fetch need not repeat it. */
export interface FetchRecord {
  readonly uri: string
  /** Digest of the archive, or of the tree if there was none. */
  readonly digest: string
  /** Digest of the tree as it was published. */
  readonly tree: string
  readonly files: number
  readonly bytes: number
  /** The server's name of this state: an entity tag, or the digest of a listing; '' if there is none. */
  readonly validator: string
}

/**
 * The place where a model is put together: beside the target, on the same file system, so that one rename publishes it. For
 * `--to /models/model` it is a folder in `/models/.model.fetch`, and the record is `/models/.model.fetched.json`.
 */
export class WorkFolder {
  readonly target: string
  readonly #root: string
  readonly #recordPath: string
  #own = ''

  constructor(target: string) {
    this.target = resolve(target)
    const hidden = join(dirname(this.target), `.${basename(this.target)}`)
    this.#root = `${hidden}.fetch`
    this.#recordPath = `${hidden}.fetched.json`
  }

  path(name: string): string {
    return join(this.#own, name)
  }

  /**
   * Makes a folder for this fetch, and deletes the folders of earlier fetches. An earlier fetch that still runs fails then.
   *
   * @returns whether there were folders of earlier fetches.
   * @throws ServeError ARTIFACT_NOT_STORED, also if the target holds something that was not fetched.
   */
  async open(): Promise<boolean> {
    await onDisk(this.target, () => this.#checkReplaceable())
    return await onDisk(this.#root, async () => {
      await mkdir(this.#root, { recursive: true })
      const earlier = await readdir(this.#root)
      this.#own = await mkdtemp(join(this.#root, 'work-'))
      // Moved first: what a running fetch publishes must not lose files on its way.
      for (const name of earlier) await rename(join(this.#root, name), this.path(name))
      for (const name of earlier) await rm(this.path(name), { recursive: true, force: true })
      return earlier.length > 0
    })
  }

  /** Tells whether a later fetch has deleted the folder of this one. */
  async isLost(): Promise<boolean> {
    return this.#own !== '' && !(await exists(this.#own))
  }

  /** Deletes what was not published. */
  async close(): Promise<void> {
    if (this.#own === '') return
    // The extraction of a bad archive may still write a file.
    await rm(this.#own, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
    // Another fetch may have begun; then the folder is not empty.
    await rmdir(this.#root).catch(() => {})
  }

  /** Reads the record of what an earlier fetch put at the target; undefined if there is nothing, or no record of it. */
  async record(): Promise<FetchRecord | undefined> {
    return (await exists(this.target)) ? await readRecord(this.#recordPath) : undefined
  }

  /**
   * Puts a tree where the model belongs, in place of an earlier fetch.
   *
   * @param tree - the folder whose contents are the model's.
   * @throws ServeError ARTIFACT_NOT_STORED, also if the target holds something that was not fetched.
   */
  async publish(tree: string, record: FetchRecord): Promise<void> {
    const { target } = this
    await onDisk(target, async () => {
      await this.#checkReplaceable()
      // Before the model: no later fetch would replace a model without a record, while a record without its model is harmless.
      await writeFile(this.path('record'), JSON.stringify(record))
      await rename(this.path('record'), this.#recordPath)
      if (await exists(target)) await rename(target, this.path('replaced'))
      await rename(tree, target)
    })
  }

  async #checkReplaceable(): Promise<void> {
    const { target } = this
    if (!(await exists(target)) || (await readdir(target)).length === 0) return
    if ((await readRecord(this.#recordPath)) !== undefined) return
    const text = `'${target}' holds something that was not fetched, want a folder that does not exist yet`
    throw new ServeError('ARTIFACT_NOT_STORED', text)
  }
}

/**
 * Runs a function that writes to disk, and converts its errors, so that a full disk is not taken for a bad connection.
 *
 * @param path - for the message.
 * @throws ServeError ARTIFACT_NOT_STORED; a ServeError of `write` unchanged.
 */
export async function onDisk<T>(path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (error instanceof ServeError) throw error
    const text = `'${path}' cannot be written: ${ServeError.from(error).message}`
    throw new ServeError('ARTIFACT_NOT_STORED', text, { cause: error })
  }
}

async function exists(path: string): Promise<boolean> {
  // A path that cannot be read fails when it is written.
  return await stat(path).then(
    () => true,
    () => false,
  )
}

/** Reads a record. A file that is no record of ours counts as none: then everything is fetched. */
async function readRecord(path: string): Promise<FetchRecord | undefined> {
  try {
    const value: FetchRecord = JSON.parse(await readFile(path, 'utf8'))
    const { uri, digest, tree, validator } = value
    const isRecord = [uri, digest, tree, validator].every((text) => typeof text === 'string')
    return isRecord ? value : undefined
  } catch {
    return undefined
  }
}
