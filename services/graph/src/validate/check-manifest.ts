import { type EnsembleManifest, modelNameOf, nameConflict } from '@tutti/api'
import { BUILTIN_HOST } from '@tutti/builtins'
import { assert, ServeError } from '@tutti/errors'
import { isEnsembleConfig, type ModelConfig } from '@tutti/model-config'
import { type Callee, fallbackOf } from '../call-rules.ts'
import { addFallbacks, fallbackConfig } from '../check/add-fallbacks.ts'
import {
  describeBuiltin,
  describeCondition,
  describeStructure,
  describeTensors,
} from '../check/describe-faults.ts'
import { findCallFaults } from '../check/find-call-faults.ts'
import { findConditionFaults } from '../check/find-condition-faults.ts'
import { findLostBatches } from '../check/find-lost-batches.ts'
import { findRepeatFaults } from '../check/find-repeat-faults.ts'
import { findSharedNames } from '../check/find-shared-names.ts'
import { findStructureFaults } from '../check/find-structure-faults.ts'
import { type ConfigOfStep, findTensorFaults } from '../check/find-tensor-faults.ts'
import type { AcceptedReason, Problem } from '../check/problem.ts'
import type { Words } from '../check/words.ts'
import { calleesOf, type Graph, type GraphStep } from '../graph.ts'
import { completeEnsembleConfig, planEnsemble } from '../plan/plan-ensemble.ts'
import { type ManifestReading, readManifest } from '../read/read-manifest.ts'
import { modelsOfStep } from '../read/resolve-references.ts'
import { signatureOf } from '../step-signature.ts'
import { typeBuiltins } from '../type-builtins.ts'
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
      /** Outputs that responses of those models may lack, by served name; absent for none. */
      readonly optionalOutputs?: Readonly<Record<string, readonly string[]>>
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
  const models = findModels(name, manifest.spec.steps.flatMap(modelsOfStep), world)
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
    // A built-in keeps nothing.
    const promised = step.builtin !== undefined || known.get(model)?.mayRunTwice === true
    const mayRunTwice = call.mayRunTwice ?? promised
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
  const { config, graph, words, fallbackWords, doubts } = reading
  const { configOf: modelOf, faultsOf } = typeBuiltins({
    config,
    graph,
    modelOf: ({ model }) => models.known.get(model)?.config,
  })
  const configOf: ConfigOfStep = (step) => signatureOf(step, modelOf(step))
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
    for (const fault of faultsOf(step)) yield describeBuiltin(fault, index, words)
  }
  yield* stepProblems(manifest, { models, reading, configOf })
  const whole = addFallbacks(graph, modelOf)
  const { definitions, faults } = findTensorFaults({
    config,
    graph: whole.graph,
    configOf,
    partial: new Set(whole.stepOf.flatMap((step, i) => (doubts.partial.has(step) ? i : []))),
  })
  for (const fault of faults) {
    const { at } = fault
    const said = at.step < graph.steps.length ? words : fallbackWords
    const step = whole.stepOf[at.step] ?? at.step
    yield describeTensors(config, { ...fault, at: { ...at, step } }, said)
  }
  const optionalOutputsOf = (step: GraphStep) =>
    calleesOf({ steps: [step] }).flatMap(
      ({ model }) => models.known.get(model)?.optionalOutputs ?? [],
    )
  const checked = { config, graph, configOf, modelOf, definitions, optionalOutputsOf }
  for (const fault of [
    ...findConditionFaults(checked),
    ...findRepeatFaults(checked),
    ...findSharedNames(config),
    ...findLostBatches(checked),
  ]) {
    yield describeCondition(fault, words)
  }
}

/** Finds what is wrong with what each step calls, and with the rules for its call. */
function* stepProblems(
  { spec }: EnsembleManifest,
  o: Pick<Looked, 'models' | 'reading'> & { readonly configOf: ConfigOfStep },
): Generator<Problem> {
  const { models, reading, configOf } = o
  const { graph, words, fallbackWords } = reading
  for (const [index, step] of graph.steps.entries()) {
    const written = spec.steps[index]
    if (step.model !== BUILTIN_HOST) {
      yield* calleeProblems(models, step, { index, words, written })
    }
    const fallback = fallbackOf(step.call ?? {})
    if (fallback !== undefined) {
      const place = { index, words: fallbackWords, written: written?.onError?.fallback }
      yield* calleeProblems(models, fallback, place)
    }
    const model = configOf(step)
    if (model === undefined) continue
    for (const { field, text } of findCallFaults(
      step.call,
      model,
      fallbackConfig(step, configOf),
    )) {
      yield { reason: 'CallInvalid', path: `${words.step(index)}.${field}`, message: text }
    }
  }
}

function* calleeProblems(
  models: FoundModels,
  callee: Callee,
  o: {
    readonly index: number
    readonly words: Words
    /** The step, or its fallback, as it was written. */
    readonly written: { readonly ensembleRef?: unknown; readonly builtin?: unknown } | undefined
  },
): Generator<Problem> {
  yield* models.problemsOf(callee, o.index, o.words)
  const known = models.known.get(callee.model)
  if (known === undefined) return
  const { words, index, written } = o
  if (written?.builtin === undefined) {
    yield* kindProblem(written?.ensembleRef !== undefined, known, words.model(index))
  } else if (isEnsembleConfig(known.config)) {
    const message = `'${callee.model}' is an Ensemble; want a Model, in whose replicas the step runs`
    yield { reason: 'UnknownModel', path: words.modelName(index), message }
  }
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
  const wanted = calleesOf(graph).map(({ version }) => version)
  const lookup = (name: string) => {
    const known = models.get(name)
    if (known === undefined) return undefined
    const { config: found, readyVersions = [1, ...wanted], optionalOutputs = [] } = known
    return { config: found, readyVersions, optionalOutputs }
  }
  try {
    return {
      accepted: true,
      config: completeEnsembleConfig(planEnsemble({ config, graph, lookup })),
      graph,
      models: Object.fromEntries([...models].map(([name, known]) => [name, known.config])),
      ...optionalOutputsIn(models),
      warnings,
    }
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    assert(reason === 'ENSEMBLE_INVALID', message)
    return { accepted: false, reason: 'DecoupledInvalid', message: `steps: ${message}` }
  }
}

function optionalOutputsIn(models: ReadonlyMap<string, KnownModel>) {
  const found = [...models].flatMap(([name, { optionalOutputs = [] }]) =>
    optionalOutputs.length === 0 ? [] : [[name, optionalOutputs] as const],
  )
  return found.length === 0 ? {} : { optionalOutputs: Object.fromEntries(found) }
}
