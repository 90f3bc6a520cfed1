import type { ModelRepository } from './model-repository.ts'

/** The models that differed from their known contents in two looks in a row. */
export interface RepositoryChanges {
  /** New models and those whose contents changed. */
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  /** True if a difference was seen in one look only: the model may still be being written. */
  readonly isSettling: boolean
}

const ABSENT = 'absent'

/**
 * Finds changed models in the repositories by their contents. A change counts once two looks in a row saw the same contents, so
 * that no model is loaded half-written.
 */
export class RepositoryWatch {
  readonly #repository: Pick<ModelRepository, 'names' | 'take'>
  /** Digest of the contents of each model that were reported last, by name. */
  readonly #taken = new Map<string, string>()
  readonly #seenOnce = new Map<string, string>()

  constructor(repository: Pick<ModelRepository, 'names' | 'take'>) {
    this.#repository = repository
  }

  /** Remembers the present contents of all models. @returns the models' names. @throws ServeError REPOSITORY_UNREADABLE */
  async start(): Promise<readonly string[]> {
    const names = await this.#repository.names()
    for (const name of names) this.#taken.set(name, await this.#digest(name))
    return names
  }

  /** Compares the models with their known contents. @throws ServeError REPOSITORY_UNREADABLE; that look does not count. */
  async look(): Promise<RepositoryChanges> {
    const names = await this.#repository.names()
    const now = new Map<string, string>()
    for (const name of this.#taken.keys()) now.set(name, ABSENT)
    for (const name of names) now.set(name, await this.#digest(name))
    const settled = [...now].filter(([name, digest]) => this.#isSettled(name, digest))
    for (const [name, digest] of settled) {
      if (digest === ABSENT) this.#taken.delete(name)
      else this.#taken.set(name, digest)
    }
    // A model that came and went between two looks is in neither.
    for (const name of this.#seenOnce.keys()) if (!now.has(name)) this.#seenOnce.delete(name)
    return {
      changed: settled.filter(([, digest]) => digest !== ABSENT).map(([name]) => name),
      removed: settled.filter(([, digest]) => digest === ABSENT).map(([name]) => name),
      isSettling: this.#seenOnce.size > 0,
    }
  }

  /** True the second time in a row that the same difference is seen. */
  #isSettled(name: string, digest: string): boolean {
    const seen = this.#seenOnce.get(name)
    this.#seenOnce.delete(name)
    if (this.#taken.get(name) === digest) return false
    if (seen === digest) return true
    this.#seenOnce.set(name, digest)
    return false
  }

  /**
   * Computes the digest of a model's contents. For a model that cannot be read the error counts as contents, so that it is a
   * change when the model can be read.
   */
  async #digest(name: string): Promise<string> {
    try {
      const opened = await this.#repository.take(name)
      await opened.release()
      return opened.digest
    } catch (error) {
      return error instanceof Error ? `error: ${error.message}` : ABSENT
    }
  }
}
