import { resolve } from 'node:path'
import {
  isEnsembleConfig,
  type ModelConfig,
  parseModelConfig,
  printModelConfig,
  type QualifiedName,
  qualifyName,
  renameStepModels,
  resolveName,
  splitName,
} from '@tutti/model-config'
import type { RepositoryMirror } from './remote/repository-mirror.ts'
import type { RepositoryModel } from './repository-model.ts'
import { listModelNames } from './scan.ts'

interface Place {
  /** @param name - of the model that is wanted of it; absent for a list of all. @returns its directory. */
  look(name?: string): Promise<string>
}

/**
 * Model repositories as namespaces, so that several may have a model of the same name. A repository's path or address is the name
 * of its namespace.
 */
export class Namespaces {
  readonly #places: ReadonlyMap<string, Place>
  #listed: ReadonlySet<string> = new Set()

  constructor(o: {
    readonly paths: readonly string[]
    readonly mirrors?: readonly RepositoryMirror[]
  }) {
    const { paths, mirrors = [] } = o
    this.#places = new Map([
      ...paths.map((path) => [resolve(path), { look: async () => path }] as const),
      ...mirrors.map((mirror) => {
        const look: Place['look'] = (name) =>
          name === undefined ? mirror.list() : mirror.refresh(name)
        return [mirror.uri, { look }] as const
      }),
    ])
  }

  /** Lists the qualified names of all models, by repository. @throws ServeError REPOSITORY_UNREADABLE */
  async names(): Promise<readonly string[]> {
    const lists = await Promise.all(
      [...this.#places].map(async ([namespace, place]) => {
        const names = await listModelNames([await place.look()])
        return names.map((name) => qualifyName(namespace, name))
      }),
    )
    const names = lists.flat()
    this.#listed = new Set(names)
    return names
  }

  /** Tells whether the latest list of names has the model. */
  hasListed(name: string): boolean {
    return this.#listed.has(name)
  }

  /**
   * Gives the directory of a model's repository, with an up-to-date copy of the model if the repository is a bucket.
   *
   * @returns no path for a name that is not qualified or a namespace that does not exist.
   */
  async pathsOf(model: QualifiedName | undefined): Promise<readonly string[]> {
    const place = model && this.#places.get(model.namespace)
    return place === undefined ? [] : [await place.look(model?.name)]
  }

  /**
   * Qualifies the model names in the steps of an ensemble.
   *
   * @returns `resolved`: the qualified names, one per line. Any other model, and a configuration that does not parse, comes back
   * unchanged and without `resolved`.
   */
  async resolveSteps(
    model: RepositoryModel,
  ): Promise<{ readonly model: RepositoryModel; readonly resolved?: string }> {
    const config = parseQuietly(model)
    const namespace = splitName(model.name)?.namespace
    if (config === undefined || !isEnsembleConfig(config) || namespace === undefined) {
      return { model }
    }
    const all = await this.names()
    const resolved: string[] = []
    const named = renameStepModels(config, (written) => {
      const candidates = all.filter((name) => splitName(name)?.name === written)
      const name = resolveName(candidates, namespace, written)
      resolved.push(name)
      // The namespace that is written there counts no more than in Triton, which overwrites it.
      return { namespace: '', name }
    })
    return {
      model: { ...model, configText: printModelConfig(named) },
      resolved: resolved.join('\n'),
    }
  }
}

function parseQuietly({ configText, configPath }: RepositoryModel): ModelConfig | undefined {
  try {
    return configText === undefined ? undefined : parseModelConfig(configText, configPath)
  } catch {
    // The load that reads it says why.
    return undefined
  }
}
