import { modelsOf } from '@tutti/graph'
import type { OpenedModel } from '@tutti/repository'
import { type EnsembleSource, unreadableSource } from '../catalog/ensemble-source.ts'

/** An ensemble as it was read last, with the digests of what was read. */
export interface WantedEnsemble extends Pick<OpenedModel, 'digest' | 'filesDigest'> {
  readonly source: EnsembleSource
}

/** Unloaded ensembles that stay listed; a bound, because load requests make names. */
const MAX_UNLOADED = 1024

/** The ensembles that are wanted, valid or not, and the ensembles that were unloaded. */
export class EnsembleSet {
  readonly #wanted = new Map<string, WantedEnsemble>()
  readonly #unloaded = new Map<string, EnsembleSource>()

  /** Ensembles for the router: those that are wanted, and those that are only listed. */
  get sources(): readonly EnsembleSource[] {
    return [...[...this.#wanted.values()].map(({ source }) => source), ...this.#unloaded.values()]
  }

  has(name: string): boolean {
    return this.#wanted.has(name)
  }

  get(name: string): EnsembleSource | undefined {
    return this.#wanted.get(name)?.source
  }

  /**
   * Lists a model that cannot be read, unless it is known as an ensemble.
   *
   * @returns true if it is listed.
   */
  addUnreadable(name: string, reason: string): boolean {
    const known = this.#wanted.get(name)
    if (known !== undefined && known.source.isUnreadable !== true) return false
    const source = unreadableSource(name, reason)
    this.add({ source, digest: '', filesDigest: '' })
    return true
  }

  /**
   * Adds or replaces an ensemble. An ensemble that did not change stays the same object, because plans are kept by its
   * identity.
   */
  add(read: WantedEnsemble): void {
    const { source, digest } = read
    this.#unloaded.delete(source.name)
    const known = this.#wanted.get(source.name)
    const isSame = known?.digest === digest && known.source.reason === source.reason
    if (!isSame) this.#wanted.set(source.name, read)
  }

  /**
   * Returns the wanted ensemble of a name if its files are still the same, with the configuration that a load request gave it.
   */
  kept(name: string, filesDigest: string): WantedEnsemble | undefined {
    const known = this.#wanted.get(name)
    return known?.filesDigest === filesDigest ? known : undefined
  }

  /**
   * Unloads an ensemble.
   *
   * @param isListed - true if the ensemble stays listed; Triton forgets one that was never valid.
   * @returns the names of its composing models; empty if it was not there.
   */
  unload(name: string, isListed: boolean): readonly string[] {
    const source = this.get(name)
    if (source === undefined) return []
    this.#wanted.delete(name)
    if (isListed) this.#unloaded.set(name, { ...source, isUnloaded: true })
    for (const [oldest] of this.#unloaded) {
      if (this.#unloaded.size <= MAX_UNLOADED) break
      this.#unloaded.delete(oldest)
    }
    return dependenciesOf(source)
  }

  /** Forgets the ensemble of a name, so that it is no longer listed. */
  delete(name: string): void {
    this.#wanted.delete(name)
    this.#unloaded.delete(name)
  }

  /** Tells whether a wanted ensemble is composed of the model. */
  needs(model: string): boolean {
    return [...this.#wanted.values()].some(({ source }) => dependenciesOf(source).includes(model))
  }
}

/** Lists the names of the models that an ensemble is composed of. */
export function dependenciesOf({ definition }: EnsembleSource): readonly string[] {
  return definition === undefined ? [] : modelsOf(definition.graph)
}
