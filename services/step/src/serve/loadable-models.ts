import { type Clock, sleep } from '@tutti/chassis'
import type { LoadableModels } from '@tutti/ensemble'
import { isEnsembleConfig } from '@tutti/model-config'
import type { LoadOverrides, ModelRepository, OpenedModel } from '@tutti/repository'

/**
 * The part of the repositories that a step may serve: the models that `--model` names, or all that are no ensembles. Looks like
 * a repository, so that it can be watched.
 */
export class OwnModels {
  readonly #repository: Pick<ModelRepository, 'names' | 'take' | 'readConfig'>
  /** Empty for all. */
  readonly #chosen: ReadonlySet<string>
  #known: readonly string[] = []

  constructor(
    repository: Pick<ModelRepository, 'names' | 'take' | 'readConfig'>,
    chosen: readonly string[],
  ) {
    this.#repository = repository
    this.#chosen = new Set(chosen)
  }

  /** For the step's description, as of the last `names`. */
  get loadable(): LoadableModels {
    const awaited = [...this.#chosen].filter((name) => !this.#known.includes(name))
    return { names: this.#known, isOpen: this.#chosen.size === 0, awaited }
  }

  may(name: string): boolean {
    return this.#chosen.size === 0 || this.#chosen.has(name)
  }

  /** @throws ServeError REPOSITORY_UNREADABLE */
  async names(): Promise<readonly string[]> {
    const all = await this.#repository.names()
    const own =
      this.#chosen.size > 0
        ? all.filter((name) => this.#chosen.has(name))
        : await this.#withoutEnsembles(all)
    this.#known = own
    return own
  }

  take(name: string, overrides?: LoadOverrides): Promise<OpenedModel> {
    return this.#repository.take(name, overrides)
  }

  async #withoutEnsembles(names: readonly string[]): Promise<readonly string[]> {
    const configs = await Promise.all(names.map((name) => this.#repository.readConfig(name)))
    return names.filter((_, i) => {
      const config = configs[i]
      return config === undefined || !isEnsembleConfig(config)
    })
  }
}

/** New directories should be listed some time, without anybody asking for them. */
const REFRESH_MS = 15_000

/** Looks again for what may be loaded, until the signal aborts. @param changed - called when it is something else. */
export async function refreshNames(
  own: OwnModels,
  o: { readonly clock: Clock; readonly signal: AbortSignal; readonly changed: () => void },
): Promise<void> {
  while (!o.signal.aborted) {
    // The signal is the only thing that ends a sleep early.
    await sleep(REFRESH_MS, o).catch(() => {})
    if (o.signal.aborted) return
    const before = own.loadable.names.join('\0')
    // What cannot be read now is looked at again.
    await own.names().catch(() => {})
    if (own.loadable.names.join('\0') !== before) o.changed()
  }
}
