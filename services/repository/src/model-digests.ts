import { createHash } from 'node:crypto'
import type { RepositoryModel } from './repository-model.ts'
import { addText, hashFile, listTree, type TreeFile } from './tree-files.ts'

interface Hashed extends Pick<TreeFile, 'size' | 'ino' | 'mtimeNs' | 'ctimeNs'> {
  readonly digest: string
}

/**
 * A file that changed this shortly before it was hashed may have changed once more within one tick of the file system's
 * clock: its hash is not kept.
 */
const RACY_NS = 2_000_000_000n

/**
 * Computes digests of models' directories, and keeps the hash of each file. A file is hashed again only if its size, inode or
 * times changed. Times alone do not change a digest.
 */
export class ModelDigests {
  readonly #epochMs: () => number
  readonly #known = new Map<string, ReadonlyMap<string, Hashed>>()

  constructor(o: { readonly epochMs?: () => number } = {}) {
    this.#epochMs = o.epochMs ?? Date.now
  }

  /**
   * Computes the digest of a model: its configuration, its versions (empty ones too), and the names and contents of its files.
   *
   * @throws as `listTree`, and the system's error if a file cannot be read or disappears meanwhile.
   */
  async digest(
    model: Pick<RepositoryModel, 'directory' | 'versions' | 'configText'>,
  ): Promise<string> {
    const before = this.#known.get(model.directory)
    const now = new Map<string, Hashed>()
    const hash = createHash('sha256')
    addText(hash, model.configText ?? '')
    addText(hash, model.versions.join(' '))
    for (const file of await listTree(model.directory)) {
      const digest = await this.#digestFile(file, before, now)
      addText(hash, file.name)
      addText(hash, digest)
    }
    this.#known.set(model.directory, now)
    return hash.digest('hex')
  }

  async #digestFile(
    file: TreeFile,
    before: ReadonlyMap<string, Hashed> | undefined,
    now: Map<string, Hashed>,
  ): Promise<string> {
    const known = before?.get(file.name)
    if (known !== undefined && isSame(known, file)) {
      now.set(file.name, known)
      return known.digest
    }
    const settledBefore = BigInt(Math.trunc(this.#epochMs())) * 1_000_000n - RACY_NS
    const digest = await hashFile(file.path)
    const { size, ino, mtimeNs, ctimeNs } = file
    if (mtimeNs < settledBefore && ctimeNs < settledBefore) {
      now.set(file.name, { size, ino, mtimeNs, ctimeNs, digest })
    }
    return digest
  }
}

function isSame(a: Hashed, b: TreeFile): boolean {
  return a.size === b.size && a.ino === b.ino && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs
}
