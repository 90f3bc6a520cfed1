import { ServeError } from '@tutti/errors'
import { findWay, settle } from '../check/graph-walks.ts'
import { type Graph, modelsOf } from '../graph.ts'

/**
 * Orders ensembles so that each comes after the ensembles that it contains.
 *
 * @param graphs - graphs by the ensemble's name. A dependency that is not in the map is ignored here; `planEnsemble` checks it.
 * @returns `order`: the names that are on no cycle, dependencies first. An ensemble that only contains one on a cycle is among
 *   them. `cycles`: the names that are on a cycle, each with its error.
 * @see triton-semantics 1.3
 */
export function orderEnsembles(graphs: ReadonlyMap<string, Graph>) {
  const dependencies = new Map(
    [...graphs].map(([name, graph]): [string, readonly string[]] => [
      name,
      modelsOf(graph).filter((model) => graphs.has(model)),
    ]),
  )
  const dependenciesOf = (name: string): readonly string[] => dependencies.get(name) ?? []
  const cycles = new Map<string, ServeError>()
  for (const [name, models] of dependencies) {
    // The first direct dependency that itself depends on `name`, directly or not.
    const last = models.find((model) => findWay(model, name, dependenciesOf) !== undefined)
    if (last !== undefined) cycles.set(name, circular(name, last))
  }
  const open = new Set([...graphs.keys()].filter((name) => !cycles.has(name)))
  const order = settle(open, (name) => !dependenciesOf(name).some((model) => open.has(model)))
  return { order, cycles }
}

function circular(name: string, last: string): ServeError {
  // The dots are part of Triton's text.
  const message = `circular dependency between ensembles: ${name} -> ... -> ${last} -> ${name}`
  return new ServeError('ENSEMBLE_DEPENDENCY', message, {
    details: { ensemble: name, model: last },
  })
}
