import { findDependencies } from '@tutti/ensemble'
import type { OpenedModel } from '@tutti/repository'
import { type EnsembleSource, unreadableSource } from '../catalog/ensemble-source.ts'

/** An ensemble as it is now. */
export interface ReadEnsemble extends Pick<OpenedModel, 'digest' | 'filesDigest'> {
  readonly source: EnsembleSource
}

/** Unloaded ensembles that stay listed; a bound, because load requests make names. */
const MAX_UNLOADED = 1024

/** Which ensembles are wanted, be they valid or not at the moment, and which were unloaded. */
export class EnsembleSet {
  readonly #wanted = new Map<string, ReadEnsemble>()
  readonly #unloaded = new Map<string, EnsembleSource>()

  /** For the router: what is wanted, and what is only listed. */
  get sources(): readonly EnsembleSource[] {
    return [...[...this.#wanted.values()].map(({ source }) => source), ...this.#unloaded.values()]
  }

  has(name: string): boolean {
    return this.#wanted.has(name)
  }

  get(name: string): EnsembleSource | undefined {
    return this.#wanted.get(name)?.source
  }

  /** Lists what cannot be read, unless it is known as an ensemble. @returns whether it is listed. */
  addUnreadable(name: string, reason: string): boolean {
    const known = this.#wanted.get(name)
    if (known !== undefined && known.source.isUnreadable !== true) return false
    const source = unreadableSource(name, reason)
    this.add({ source, digest: '', filesDigest: '' })
    return true
  }

  /** Takes an ensemble as it is now. One that did not change stays the very same object: plans are kept by that. */
  add(read: ReadEnsemble): void {
    const { source, digest } = read
    this.#unloaded.delete(source.name)
    const known = this.#wanted.get(source.name)
    const isSame = known?.digest === digest && known.source.reason === source.reason
    if (!isSame) this.#wanted.set(source.name, read)
  }

  /** Finds what is wanted under the name if its files are still these, with the configuration that a load request gave it. */
  kept(name: string, filesDigest: string): ReadEnsemble | undefined {
    const known = this.#wanted.get(name)
    return known?.filesDigest === filesDigest ? known : undefined
  }

  /**
   * @param isListed - whether it stays listed: Triton forgets one that never was valid.
   * @returns the names of its composing models; none if it was not there.
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

  /** A model took the name. */
  delete(name: string): void {
    this.#wanted.delete(name)
    this.#unloaded.delete(name)
  }

  /** True if a wanted ensemble is composed of the model. */
  needs(model: string): boolean {
    return [...this.#wanted.values()].some(({ source }) => dependenciesOf(source).includes(model))
  }
}

/** Names of the models that the ensemble is composed of. */
export function dependenciesOf({ config }: EnsembleSource): readonly string[] {
  return config === undefined ? [] : findDependencies(config)
}
