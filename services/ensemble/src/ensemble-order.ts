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
  const dependencies = new Map(
    [...configs].map(([name, config]): [string, readonly string[]] => [
      name,
      findDependencies(config).filter((model) => configs.has(model)),
    ]),
  )
  const cycles = new Map<string, ServeError>()
  for (const name of configs.keys()) {
    const last = closingDependency(dependencies, name)
    if (last !== undefined) cycles.set(name, circular(name, last))
  }
  const order = new Set<string>()
  for (let size = -1; size !== order.size; ) {
    size = order.size
    for (const [name, models] of dependencies) {
      const isNext = models.every((model) => order.has(model) || cycles.has(model))
      if (isNext && !cycles.has(name)) order.add(name)
    }
  }
  return { order: [...order], cycles }
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

function circular(name: string, last: string): ServeError {
  // The dots are part of Triton's text.
  const message = `circular dependency between ensembles: ${name} -> ... -> ${last} -> ${name}`
  return new ServeError('ENSEMBLE_DEPENDENCY', message, {
    details: { ensemble: name, model: last },
  })
}
