import { type Claimant, hintOfResource, type NamedResource, notServedText } from '@tutti/api'
import type { ModelConfig } from '@tutti/model-config'
import { findWay } from '../check/graph-walks.ts'
import { hintOf, type Problem } from '../check/problem.ts'
import type { Words } from '../check/words.ts'
import type { GraphStep } from '../graph.ts'

/** The facts that are known about the model of a served name. */
export interface KnownModel {
  /** Completed configuration of the Model or Ensemble. */
  readonly config: ModelConfig
  /** Versions that are ready; absent if they are not known (offline). Then every version counts as ready. */
  readonly readyVersions?: readonly number[]
  /** Outputs that an Ensemble's responses may lack because steps were skipped; absent for none. */
  readonly optionalOutputs?: readonly string[]
  /** True if the model's tensors are known only once its code runs. */
  readonly isPending?: boolean
  /** True if its author lets it execute a request twice. */
  readonly mayRunTwice?: boolean
}

/** The world that an ensemble is checked against: the other models of its namespace, or of its repositories. */
export interface EnsembleWorld {
  /**
   * Finds the Model or Ensemble of a served name.
   *
   * @returns 'pending' if it exists but its signature is not known yet, 'absent' if it may still come, 'unknown' if it does not
   *   exist and will not come, 'faulty' if it has problems of its own, which are told elsewhere.
   */
  readonly lookup: (servedName: string) => KnownModel | 'unknown' | 'pending' | 'absent' | 'faulty'
  /** Lists every served name, for hints. */
  readonly names?: () => Iterable<string>
  /** Tells why a model of a repository cannot be read; returns undefined for any other model. */
  readonly problemOf?: (servedName: string) => string | undefined
  /** Finds the resource of a `metadata.name`, for hints, because users mistake that name for the served name. */
  readonly resourceNamed?: (name: string) => NamedResource | undefined
  /** Finds another resource that has this Ensemble's served name. */
  readonly holder?: (servedName: string) => Claimant | undefined
  /** Lists the served names that another Ensemble runs: in the spec as written, and in the spec as accepted. */
  readonly composes?: (servedName: string) => readonly string[]
}

/** The models of an ensemble, by their names, as far as they are known. */
export interface FoundModels {
  /** Those whose tensors can be compared. */
  readonly known: ReadonlyMap<string, KnownModel>
  /** Says what is wrong with the model of a step. */
  problemsOf(
    step: Pick<GraphStep, 'model' | 'version'>,
    index: number,
    words: Words,
  ): readonly Problem[]
}

/**
 * Looks up the models that an ensemble runs. One that contains the ensemble itself is not looked up, so that this ends.
 *
 * @param name - the ensemble's.
 */
export function findModels(
  name: string,
  models: Iterable<string>,
  world: EnsembleWorld,
): FoundModels {
  const known = new Map<string, KnownModel>()
  const found = new Map<string, KnownModel>()
  const missing = new Map<string, Missing>()
  for (const model of new Set(models)) {
    if (model === '') continue
    const way = findWay(model, name, (other) => world.composes?.(other) ?? [])
    const looked = way === undefined ? world.lookup(model) : [name, ...way]
    if (typeof looked === 'string' || isWay(looked)) missing.set(model, looked)
    else if (looked.readyVersions?.length === 0) missing.set(model, 'pending')
    else {
      found.set(model, looked)
      if (looked.isPending !== true) known.set(model, looked)
    }
  }
  return {
    known,
    problemsOf: ({ model, version }, index, words) => {
      const one = found.get(model)
      const lacks = missing.get(model)
      const problem =
        lacks === undefined
          ? pendingProblem(one, model, words.model(index))
          : missingProblem({ model, lacks, index, words, world })
      return [...(problem ?? []), ...versionProblem(one, { model, version }, words.version(index))]
    },
  }
}

/** Why a model is not known; a list is the way on which it contains the ensemble. */
type Missing = 'unknown' | 'pending' | 'absent' | 'faulty' | readonly string[]

function isWay(looked: KnownModel | readonly string[]): looked is readonly string[] {
  return Array.isArray(looked)
}

function missingProblem(o: {
  readonly model: string
  readonly lacks: Missing
  readonly index: number
  readonly words: Words
  readonly world: EnsembleWorld
}): readonly Problem[] {
  const { model, lacks, index, words, world } = o
  if (lacks === 'faulty') return []
  const path = words.model(index)
  if (lacks === 'unknown') {
    const message = unknownText(model, words.noModel, world)
    return [{ reason: 'UnknownModel', path: words.modelName(index), message }]
  }
  if (typeof lacks !== 'string') {
    const message = `an ensemble cannot contain itself: ${lacks.join(' -> ')}`
    return [{ reason: 'CycleDetected', path, message }]
  }
  const message =
    lacks === 'absent'
      ? notServedText(model, world.resourceNamed?.(model))
      : `the signature of '${model}' is not known yet; it is once the Model or Ensemble of that served name is ready`
  return [{ reason: 'SchemaPending', path, message }]
}

function unknownText(
  name: string,
  noModel: string,
  { names, resourceNamed, problemOf }: EnsembleWorld,
): string {
  const problem = problemOf?.(name)
  if (problem !== undefined) return `'${name}' is there, but cannot be read: ${problem}`
  const hint = hintOfResource(name, resourceNamed?.(name)) ?? hintOf(name, names?.() ?? [])
  return `${noModel} '${name}'${hint}`
}

function pendingProblem(
  found: KnownModel | undefined,
  model: string,
  path: string,
): readonly Problem[] {
  if (found?.isPending !== true) return []
  const message = `the tensors of '${model}' are known only once its code runs; want inputs and outputs in its config.pbtxt to have them checked`
  return [{ reason: 'SchemaPending', path, message }]
}

function versionProblem(
  found: KnownModel | undefined,
  { model, version }: Pick<GraphStep, 'model' | 'version'>,
  path: string,
): readonly Problem[] {
  const there = found?.readyVersions
  if (version === -1 || there === undefined || there.includes(version)) return []
  const message = `got ${version}, want a version of '${model}' that is served: ${there.join(', ')}`
  return [{ reason: 'UnknownModel', path, message }]
}
