import { type EnsembleManifest, modelNameOf, nameConflict } from '@tutti/api'
import { assert, ServeError } from '@tutti/errors'
import { isEnsembleConfig, type ModelConfig } from '@tutti/model-config'
import { describeStructure, describeTensors } from '../check/describe-faults.ts'
import { findCallFaults } from '../check/find-call-faults.ts'
import { findStructureFaults } from '../check/find-structure-faults.ts'
import { findTensorFaults } from '../check/find-tensor-faults.ts'
import type { AcceptedReason, Problem } from '../check/problem.ts'
import type { Graph, GraphStep } from '../graph.ts'
import { completeEnsembleConfig, planEnsemble } from '../plan/plan-ensemble.ts'
import { type ManifestReading, readManifest } from '../read/read-manifest.ts'
import { modelOfStep } from '../read/resolve-references.ts'
import { type EnsembleWorld, type FoundModels, findModels, type KnownModel } from './find-models.ts'

/** The result of an Ensemble's check. */
export type EnsembleCheck =
  | {
      readonly accepted: true
      /** Completed configuration of the Ensemble. */
      readonly config: ModelConfig
      readonly graph: Graph
      /** Configurations that the Ensemble was checked against, by served name. */
      readonly models: Readonly<Record<string, ModelConfig>>
      readonly warnings: readonly string[]
    }
  | ({
      readonly accepted: false
      /** Further problems of the Ensemble; absent if there are none, or if none were looked for. */
      readonly others?: readonly EnsembleProblem[]
    } & EnsembleProblem)

/** One thing that is wrong with an Ensemble. */
export interface EnsembleProblem {
  readonly reason: AcceptedReason
  /** Text in one line: a path from `spec` on, what was got, what is wanted. */
  readonly message: string
}

const SUMMARIZED_PROBLEMS = 4

/** Joins the first problems into one text, and counts the others: a condition has no room for a hundred. */
export function summarizeProblems(problems: readonly Pick<EnsembleProblem, 'message'>[]): string {
  const shown = problems.slice(0, SUMMARIZED_PROBLEMS).map(({ message }) => message)
  const more = problems.length - shown.length
  return (
    shown.join('; also ') + (more === 0 ? '' : `; and ${more} more, which tutti validate lists`)
  )
}

/**
 * Checks an Ensemble, both for the operator's condition `Accepted` and for `tutti validate`. It finds all problems, except
 * those that follow from another problem. Problems that the manifest alone shows come first, because no change of a model
 * helps. Signatures that are not known yet come last.
 */
export function checkEnsemble(manifest: EnsembleManifest, world: EnsembleWorld): EnsembleCheck {
  const name = modelNameOf(manifest)
  const models = findModels(name, manifest.spec.steps.map(modelOfStep), world)
  const read = readManifest(manifest, (model) => models.known.get(model)?.config)
  const reading = { ...read, graph: withPromises(read.graph, models.known) }
  const isPending = Map.groupBy(
    findProblems(manifest, { world, models, reading }),
    ({ reason }) => reason === 'SchemaPending',
  )
  const [first, ...others] = [...(isPending.get(false) ?? []), ...(isPending.get(true) ?? [])].map(
    ({ reason, path, message }) => ({ reason, message: `${path}: ${message}` }),
  )
  if (first === undefined) return finish(reading, models.known)
  return { accepted: false, ...first, ...(others.length > 0 && { others }) }
}

/** Lets the steps run twice whose Models may, unless a step says that it may not. */
function withPromises(graph: Graph, known: FoundModels['known']): Graph {
  const steps = graph.steps.map((step): GraphStep => {
    const { call, model } = step
    if (call?.retry === undefined && call?.hedge === undefined) return step
    const mayRunTwice = call.mayRunTwice ?? known.get(model)?.mayRunTwice === true
    return { ...step, call: { ...call, mayRunTwice } }
  })
  return { ...graph, steps }
}

interface Looked {
  readonly world: EnsembleWorld
  readonly models: FoundModels
  readonly reading: ManifestReading
}

function* findProblems(
  manifest: EnsembleManifest,
  { world, models, reading }: Looked,
): Generator<Problem> {
  const { config, graph, words, doubts } = reading
  const holder = world.holder?.(config.name)
  if (holder !== undefined) {
    const message = nameConflict(config.name, holder)
    yield { reason: 'NameConflict', path: 'modelName', message }
  }
  // A shorthand waits for a model that is told of below.
  yield* reading.problems.filter(({ reason }) => reason !== 'SchemaPending')
  for (const fault of findStructureFaults(config, graph, doubts)) {
    yield describeStructure(fault, words)
  }
  for (const [index, step] of graph.steps.entries()) {
    yield* models.problemsOf(step, index, words)
    const known = models.known.get(step.model)
    if (known === undefined) continue
    const isEnsembleRef = manifest.spec.steps[index]?.ensembleRef !== undefined
    yield* kindProblem(isEnsembleRef, known, words.model(index))
    for (const { field, text } of findCallFaults(step.call, known.config)) {
      yield { reason: 'CallInvalid', path: `${words.step(index)}.${field}`, message: text }
    }
  }
  const { faults } = findTensorFaults({
    config,
    graph,
    configOf: ({ model }) => models.known.get(model)?.config,
    partial: doubts.partial,
  })
  for (const fault of faults) yield describeTensors(config, fault, words)
}

function kindProblem(
  isEnsembleRef: boolean,
  { config }: KnownModel,
  path: string,
): readonly Problem[] {
  const isEnsemble = isEnsembleConfig(config)
  if (isEnsemble === isEnsembleRef) return []
  const [got, want] = isEnsemble ? ['an Ensemble', 'ensembleRef'] : ['a Model', 'modelRef']
  return [{ reason: 'UnknownModel', path, message: `'${config.name}' is ${got}; want ${want}` }]
}

/** Plans it. The checks above find what planning would refuse; what is left is about decoupled models. */
function finish(
  { config, graph, warnings }: ManifestReading,
  models: ReadonlyMap<string, KnownModel>,
): EnsembleCheck {
  const wanted = graph.steps.map(({ version }) => version)
  const lookup = (name: string) => {
    const known = models.get(name)
    return known && { config: known.config, readyVersions: known.readyVersions ?? [1, ...wanted] }
  }
  try {
    return {
      accepted: true,
      config: completeEnsembleConfig(planEnsemble({ config, graph, lookup })),
      graph,
      models: Object.fromEntries([...models].map(([name, known]) => [name, known.config])),
      warnings,
    }
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    assert(reason === 'ENSEMBLE_INVALID', message)
    return { accepted: false, reason: 'DecoupledInvalid', message: `steps: ${message}` }
  }
}
