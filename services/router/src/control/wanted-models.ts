import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isNewer, type WantedModel } from '@tutti/ensemble'
import type { OverrideDirectories, OverrideDirectory } from '@tutti/repository'

type Files = ReadonlyMap<string, Uint8Array>

interface Kept {
  readonly wanted: WantedModel
  readonly fileNames: readonly string[]
  readonly directory?: OverrideDirectory
}

const NO_FILES: Files = new Map()

/** Names that are remembered; a bound, because load requests make names. */
const MAX_WANTED = 4096

/**
 * What was last asked for under each name, by any router: the newest holds, wherever it was asked for. Files of load requests are
 * kept on disk, for steps and routers that come later.
 */
export class WantedModels {
  readonly #by: string
  readonly #directories: Pick<OverrideDirectories, 'write'>
  readonly #epochMs: () => number
  readonly #kept = new Map<string, Kept>()

  constructor(o: {
    /** This router. */
    readonly by: string
    readonly directories: Pick<OverrideDirectories, 'write'>
    readonly epochMs: () => number
  }) {
    this.#by = o.by
    this.#directories = o.directories
    this.#epochMs = o.epochMs
  }

  get all(): readonly WantedModel[] {
    return [...this.#kept.values()].map(({ wanted }) => wanted)
  }

  get(name: string): WantedModel | undefined {
    return this.#kept.get(name)?.wanted
  }

  hasFiles(name: string): boolean {
    return (this.#kept.get(name)?.fileNames.length ?? 0) > 0
  }

  /** Gives a request that this router carried out its place in time: after every one that it knows of. */
  stamp(asked: Omit<WantedModel, 'at' | 'by'>): WantedModel {
    const known = this.get(asked.name)
    const at = Math.max(Math.trunc(this.#epochMs()), (known?.at ?? -1) + 1)
    return { ...asked, at, by: this.#by }
  }

  /** Takes a request. @returns false if a newer one is known. */
  async take(wanted: WantedModel, files: Files = NO_FILES): Promise<boolean> {
    const { name } = wanted
    if (!isNewer(wanted, this.get(name))) return false
    const directory = files.size === 0 ? undefined : await this.#directories.write(name, files)
    const known = this.#kept.get(name)
    if (!isNewer(wanted, known?.wanted)) {
      await directory?.remove()
      return false
    }
    // Last among all, so that the longest unchanged ones are forgotten first.
    this.#kept.delete(name)
    const fileNames = [...files.keys()]
    this.#kept.set(name, { wanted, fileNames, ...(directory !== undefined && { directory }) })
    await known?.directory?.remove()
    await this.#forgetSome()
    return true
  }

  /** The files that came with a load. */
  async files(name: string): Promise<Files> {
    const kept = this.#kept.get(name)
    const directory = kept?.directory
    if (kept === undefined || directory === undefined) return NO_FILES
    const files = await Promise.all(
      kept.fileNames.map(
        async (file): Promise<readonly [string, Uint8Array]> => [
          file,
          await readFile(join(directory.path, file)),
        ],
      ),
    )
    return new Map(files)
  }

  async #forgetSome(): Promise<void> {
    for (const [oldest, { directory }] of this.#kept) {
      if (this.#kept.size <= MAX_WANTED) return
      this.#kept.delete(oldest)
      await directory?.remove()
    }
  }
}
