import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'

/** What `orderEnsembles` found. */
export interface EnsembleOrder {
  /** Every name that is on no cycle, dependencies first. */
  readonly order: string[]
  /** The names that are on a cycle, each with its error. */
  readonly cycles: Map<string, ServeError>
}

/** Names of the models that an ensemble composes, each once, in step order; none for a config that is no ensemble. */
export function findDependencies(config: ModelConfig): readonly string[] {
  const steps = config.ensemble_scheduling?.step ?? []
  return [...new Set(steps.map((step) => step.model_name))]
}

/**
 * Orders ensembles so that each comes after those that it contains.
 *
 * @param configs - by name; what a config depends on but is not in the map is left to `planEnsemble`.
 * @returns an ensemble that merely contains one on a cycle stays in `order`.
 * @see triton-semantics 1.3
 */
export function orderEnsembles(configs: ReadonlyMap<string, ModelConfig>): EnsembleOrder {
  const dependencies = new Map<string, readonly string[]>()
  for (const [name, config] of configs) {
    dependencies.set(
      name,
      findDependencies(config).filter((model) => configs.has(model)),
    )
  }
  const cycles = new Map<string, ServeError>()
  for (const name of configs.keys()) {
    const last = closingDependency(dependencies, name)
    if (last !== undefined) cycles.set(name, circular(name, last))
  }
  return { order: dependenciesFirst(dependencies, cycles), cycles }
}

/** The first direct dependency of `name` that itself depends on `name`, directly or not. */
function closingDependency(
  dependencies: ReadonlyMap<string, readonly string[]>,
  name: string,
): string | undefined {
  return dependencies.get(name)?.find((model) => {
    const queue = new Set([model])
    for (const reached of queue) {
      if (reached === name) return true
      for (const further of dependencies.get(reached) ?? []) queue.add(further)
    }
    return false
  })
}

function dependenciesFirst(
  dependencies: ReadonlyMap<string, readonly string[]>,
  cycles: ReadonlyMap<string, ServeError>,
): string[] {
  const placed = new Set<string>()
  for (const root of dependencies.keys()) {
    // Depth first without recursion: nesting is as deep as the repository says.
    const stack = [root]
    for (let name = stack.at(-1); name !== undefined; name = stack.at(-1)) {
      const open = (dependencies.get(name) ?? []).filter(
        (model) => !placed.has(model) && !cycles.has(model),
      )
      if (placed.has(name) || cycles.has(name) || open.length === 0) {
        stack.pop()
        if (!cycles.has(name)) placed.add(name)
      } else {
        stack.push(...open)
      }
    }
  }
  return [...placed]
}

function circular(name: string, last: string): ServeError {
  // The dots are part of Triton's text.
  const message = `circular dependency between ensembles: ${name} -> ... -> ${last} -> ${name}`
  return new ServeError('ENSEMBLE_DEPENDENCY', message, {
    details: { ensemble: name, model: last },
  })
}
