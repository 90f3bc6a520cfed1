import {
  applyModelOverrides,
  compareClaims,
  type EnsembleManifest,
  type Manifest,
  type ModelManifest,
  modelNameOf,
  type NamedResource,
  toModelOverrides,
} from '@tutti/api'
import {
  checkEnsemble,
  type EnsembleCheck,
  type EnsembleWorld,
  type KnownModel,
  modelsOf,
  modelsOfStep,
  optionalOutputsOf,
  readConfigGraph,
} from '@tutti/graph'
import {
  emptyModelConfig,
  isEnsembleConfig,
  type ModelConfig,
  selectVersions,
} from '@tutti/model-config'
import type { ReadRepository } from '../manifests/repository-configs.ts'

/**
 * Checks the manifests of one namespace together. A manifest precedes a model of the repository with the same name. If several
 * manifests have one served name, the name belongs to the manifest that would get it if all were applied at once.
 */
export class NamespaceManifests {
  readonly #manifests: readonly Manifest[]
  readonly #byName = new Map<string, Manifest>()
  readonly #repository: ReadRepository | undefined
  readonly #results = new Map<Manifest, EnsembleCheck>()

  /** @param repository - with a repository, an unknown name is an error; without it, the cluster may have the name. */
  constructor(manifests: readonly Manifest[], repository: ReadRepository | undefined) {
    this.#manifests = manifests
    this.#repository = repository
    for (const manifest of manifests.toSorted(compareClaims)) {
      const name = modelNameOf(manifest)
      if (!this.#byName.has(name)) this.#byName.set(name, manifest)
    }
  }

  /** Finds the other manifest that has the served name of a manifest; undefined if the manifest has the name itself. */
  holderOf(manifest: Manifest): Manifest | undefined {
    const holder = this.#byName.get(modelNameOf(manifest))
    return holder === manifest ? undefined : holder
  }

  check(manifest: EnsembleManifest): EnsembleCheck {
    const known = this.#results.get(manifest)
    if (known !== undefined) return known
    const result = checkEnsemble(manifest, this.#worldOf(manifest))
    this.#results.set(manifest, result)
    return result
  }

  #worldOf(manifest: EnsembleManifest): EnsembleWorld {
    return {
      lookup: (name) => this.#lookup(name),
      names: () => this.#othersThan(modelNameOf(manifest)),
      problemOf: (name) => this.#repository?.problems.get(name),
      resourceNamed: (name) => this.#resourceNamed(name),
      holder: () => this.holderOf(manifest),
      composes: (name) => this.#composes(name),
    }
  }

  #othersThan(servedName: string): Iterable<string> {
    const names = new Set([...this.#byName.keys(), ...(this.#repository?.configs.keys() ?? [])])
    names.delete(servedName)
    return names
  }

  #resourceNamed(name: string): NamedResource | undefined {
    const named = this.#manifests.filter(({ metadata }) => metadata.name === name)
    const found = named.find(({ kind }) => kind === 'Model') ?? named[0]
    return found && { kind: found.kind, servedName: modelNameOf(found) }
  }

  #lookup(name: string): KnownModel | 'unknown' | 'pending' | 'absent' {
    const manifest = this.#byName.get(name)
    if (manifest?.kind === 'Ensemble') {
      // An ensemble that contains itself is refused before anything is looked up, so this ends.
      const result = this.check(manifest)
      if (!result.accepted) return 'pending'
      const { config, graph } = result
      return { config, readyVersions: [1], optionalOutputs: optionalOutputsOf(graph) }
    }
    const config = this.#configOf(name, manifest)
    if (config === undefined) return this.#repository === undefined ? 'absent' : 'unknown'
    if (config.input.length === 0 || config.output.length === 0) return 'pending'
    const there = this.#repository?.versions.get(name)
    return {
      config,
      ...(there !== undefined && { readyVersions: chosenVersions(config, there) }),
      mayRunTwice: manifest?.spec.mayRunTwice === true,
    }
  }

  /** Finds the configuration of a Model, or of a model that only the repository has. */
  #configOf(name: string, manifest: ModelManifest | undefined): ModelConfig | undefined {
    const found = this.#repository?.configs.get(name)
    if (manifest === undefined) return found
    const base = found === undefined || isEnsembleConfig(found) ? emptyModelConfig(name) : found
    return applyModelOverrides(base, toModelOverrides(manifest.spec))
  }

  #composes(name: string): readonly string[] {
    const manifest = this.#byName.get(name)
    if (manifest?.kind === 'Ensemble') {
      return manifest.spec.steps.flatMap(modelsOfStep)
    }
    const config = manifest === undefined ? this.#repository?.configs.get(name) : undefined
    return config === undefined ? [] : modelsOf(readConfigGraph(config))
  }
}

/** Lists the versions that would be served; none if the policy finds none. */
function chosenVersions(config: ModelConfig, there: readonly number[]): readonly number[] {
  try {
    return selectVersions(config, there)
  } catch {
    // It has no other way to fail.
    return []
  }
}
