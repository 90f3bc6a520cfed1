import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { describeStructure, describeTensors } from '../check/describe-faults.ts'
import { findFieldFaults } from '../check/find-field-faults.ts'
import { findStructureFaults } from '../check/find-structure-faults.ts'
import { findTensorFaults } from '../check/find-tensor-faults.ts'
import type { Problem } from '../check/problem.ts'
import { validateGraph } from '../check/validate-graph.ts'
import { type Graph, modelsOf } from '../graph.ts'
import { completeEnsembleConfig, planEnsemble } from '../plan/plan-ensemble.ts'
import { ConfigWords } from '../read/config-words.ts'
import { findUnknownTensors } from '../read/find-unknown-tensors.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { type EnsembleWorld, findModels, type KnownModel } from './find-models.ts'

/** The result of the check of an ensemble's config.pbtxt. */
export interface CheckedConfig {
  readonly problems: readonly Problem[]
  /** Configuration of the ensemble: completed if it could be planned, else as written. */
  readonly config: ModelConfig
}

/**
 * Finds all problems of an ensemble in config.pbtxt, except those that follow from another one. A load request is answered with
 * Triton's text of the first; an author needs all, each with its field. Problems that only planning finds are looked for only if
 * there are no others but notes (SchemaPending).
 *
 * @param config - normalised.
 */
export function checkConfig(config: ModelConfig, world: EnsembleWorld): CheckedConfig {
  const graph = readConfigGraph(config)
  const words = new ConfigWords(config)
  const models = findModels(config.name, modelsOf(graph), world)
  const unknown = findUnknownTensors(config.input, graph, words)
  // Without steps, each output would be told too.
  const references = graph.steps.length === 0 ? [] : unknown.problems
  const tensors = findTensorFaults({
    config,
    graph,
    configOf: ({ model }) => models.known.get(model)?.config,
  })
  const problems = [
    ...[...findFieldFaults(config)].map(([message, path = '']): Problem => {
      return { reason: 'InvalidSpec', path, message }
    }),
    ...references,
    ...findStructureFaults(config, graph, unknown.doubts).map((fault) =>
      describeStructure(fault, words),
    ),
    ...graph.steps.flatMap((step, index) => models.problemsOf(step, index, words)),
    ...tensors.faults.map((fault) => describeTensors(config, fault, words)),
  ]
  if (problems.some(({ reason }) => reason !== 'SchemaPending')) return { problems, config }
  const isWhole = graph.steps.every(({ model }) => models.known.has(model))
  const planned = plan(config, graph, isWhole ? models.known : undefined)
  return { ...planned, problems: [...planned.problems, ...problems] }
}

/** @param models - undefined if not all are known: then only the graph is looked at. */
function plan(
  config: ModelConfig,
  graph: Graph,
  models: ReadonlyMap<string, KnownModel> | undefined,
): CheckedConfig {
  try {
    if (models === undefined) {
      validateGraph(config, graph)
      return { problems: [], config }
    }
    const lookup = (name: string) => {
      const known = models.get(name)
      return known && { config: known.config, readyVersions: known.readyVersions ?? [1] }
    }
    return { problems: [], config: completeEnsembleConfig(planEnsemble({ config, graph, lookup })) }
  } catch (error) {
    const { message } = ServeError.from(error)
    return { problems: [{ reason: 'InvalidSpec', path: 'ensemble_scheduling', message }], config }
  }
}
