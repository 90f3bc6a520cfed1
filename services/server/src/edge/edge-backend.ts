import { ServeError } from '@tutti/errors'
import type { ModelMetadata, ModelStatistics } from '@tutti/model-config'
import type { IndexEntry, InferenceBackend, ResolvedModel } from '../inference-backend.ts'

export interface EdgeBackendOptions {
  readonly backend: InferenceBackend
  /** Models that the caller reaches. */
  readonly names: ReadonlySet<string>
  /** Models that the caller would reach with another token. */
  readonly locked: ReadonlySet<string>
}

/** A few models of a backend, as somebody outside sees them: the others are not there, and nothing can be loaded or unloaded. */
export class EdgeBackend implements InferenceBackend {
  readonly control = undefined
  readonly #o: EdgeBackendOptions

  constructor(o: EdgeBackendOptions) {
    this.#o = o
  }

  isLive(): boolean {
    return this.#o.backend.isLive()
  }

  /** About what the caller reaches: that another model is not ready is none of its business. */
  isReady(): boolean {
    return this.isLive() && [...this.#o.names].every((name) => this.#isThere(name))
  }

  async isModelReady(name: string, version: string): Promise<boolean> {
    if (this.#o.names.has(name)) return await this.#o.backend.isModelReady(name, version)
    if (this.#o.locked.has(name)) throw unauthenticated(name)
    return false
  }

  resolve(name: string, version: string): ResolvedModel {
    this.#check(name)
    return this.#o.backend.resolve(name, version)
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    this.#check(name)
    return this.#o.backend.modelMetadata(name, version)
  }

  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    if (name !== '') {
      this.#check(name)
      return await this.#o.backend.statistics(name, version)
    }
    const names = [...this.#o.names].filter((known) => this.#isThere(known))
    const all = await Promise.all(names.map((known) => this.#o.backend.statistics(known, version)))
    return all.flat()
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    const entries = await this.#o.backend.repositoryIndex(readyOnly)
    return entries.filter(({ name }) => this.#o.names.has(name))
  }

  #isThere(name: string): boolean {
    try {
      this.#o.backend.resolve(name, '')
      return true
    } catch {
      // Unknown or not ready: either way a client cannot call it now.
      return false
    }
  }

  #check(name: string): void {
    if (this.#o.names.has(name)) return
    if (this.#o.locked.has(name)) throw unauthenticated(name)
    throw new ServeError('MODEL_NOT_FOUND', `Request for unknown model: '${name}' is not found`, {
      details: { model: name },
    })
  }
}

function unauthenticated(name: string): ServeError {
  const text = `model '${name}' wants a bearer token, got none that it knows`
  return new ServeError('UNAUTHENTICATED', text, { details: { model: name } })
}
