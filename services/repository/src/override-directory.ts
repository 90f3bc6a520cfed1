import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A directory that holds one model of a load request. */
export interface OverrideDirectory {
  /** Absolute path of the model directory; its last part is the model's name. */
  readonly path: string
  /** Deletes the directory; ignores errors, because no caller could handle them. */
  remove(): Promise<void>
}

/** The private temporary directories of one process for models that came with load requests. A killed process leaves them behind. */
export class OverrideDirectories {
  readonly #parent: string
  #count = 0
  #root: Promise<string> | undefined

  constructor(parent = tmpdir()) {
    this.#parent = parent
  }

  /** Writes a model's files, readable for this user alone. @param files - checked paths -> contents. */
  async write(name: string, files: ReadonlyMap<string, Uint8Array>): Promise<OverrideDirectory> {
    // Made for this user alone.
    this.#root ??= mkdtemp(join(this.#parent, 'tutti-models-'))
    const container = join(await this.#root, String(this.#count++))
    const path = join(container, name)
    const remove = async (): Promise<void> => {
      await rm(container, { recursive: true, force: true }).catch(() => {})
    }
    try {
      await mkdir(path, { recursive: true, mode: 0o700 })
      for (const [file, contents] of files) {
        const target = join(path, file)
        await mkdir(dirname(target), { recursive: true, mode: 0o700 })
        await writeFile(target, contents, { flag: 'wx', mode: 0o600 })
      }
      return { path, remove }
    } catch (error) {
      await remove()
      throw error
    }
  }

  /** Deletes all directories of this process. */
  async close(): Promise<void> {
    const root = await this.#root?.catch(() => undefined)
    this.#root = undefined
    if (root !== undefined) await rm(root, { recursive: true, force: true }).catch(() => {})
  }
}
