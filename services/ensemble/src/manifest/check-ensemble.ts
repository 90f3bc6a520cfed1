import {
  type Claimant,
  type EnsembleManifest,
  type EnsembleRules,
  type EnsembleSpec,
  type EnsembleStepSpec,
  hintOfResource,
  modelNameOf,
  type NamedResource,
  nameConflict,
  notServedText,
} from '@tutti/api'
import { assert, ServeError } from '@tutti/errors'
import { isEnsembleConfig, type ModelConfig } from '@tutti/model-config'
import { findWay } from '../graph-walks.ts'
import { completeEnsembleConfig, hedgeFault, planEnsemble } from '../plan-ensemble.ts'
import { checkTensors } from './check-tensors.ts'
import {
  type AcceptedReason,
  type EnsembleFault,
  hintOf,
  type ReportFault,
  refused,
} from './ensemble-fault.ts'
import { modelOfStep } from './ensemble-graph.ts'
import { stepPath } from './ensemble-references.ts'
import { type EnsembleConversion, toEnsembleConfig } from './to-ensemble-config.ts'

/** The facts that are known about the model of a served name. */
export interface KnownModel {
  /** Completed configuration of the Model or Ensemble. */
  readonly config: ModelConfig
  /** Versions that are ready; absent if they are not known (offline). Then every version counts as ready. */
  readonly readyVersions?: readonly number[]
}

/** The world that an Ensemble is checked against: the other resources of its namespace. */
export interface EnsembleWorld {
  /**
   * Finds the Model or Ensemble of a served name.
   *
   * @returns 'pending' if it exists but its signature is not known yet, 'absent' if it may still come, 'unknown' if it does not
   *   exist and will not come.
   */
  readonly lookup: (servedName: string) => KnownModel | 'unknown' | 'pending' | 'absent'
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

/** The result of an Ensemble's check. */
export type EnsembleCheck =
  | {
      readonly accepted: true
      /** Completed configuration of the Ensemble. */
      readonly config: ModelConfig
      readonly rules: EnsembleRules
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
  const faults: EnsembleFault[] = []
  const report: ReportFault = (fault) => faults.push(fault)
  const accepted = check(manifest, world, report)
  const isPending = Map.groupBy(faults, ({ fault }) => fault === 'SchemaPending')
  const [first, ...others] = [...(isPending.get(false) ?? []), ...(isPending.get(true) ?? [])].map(
    ({ fault, message }) => ({ reason: fault, message }),
  )
  if (first === undefined) return accepted()
  return { accepted: false, ...first, ...(others.length > 0 && { others }) }
}

/** @returns what is left to do if nothing was reported. */
function check(
  manifest: EnsembleManifest,
  world: EnsembleWorld,
  report: ReportFault,
): () => EnsembleCheck {
  const name = modelNameOf(manifest)
  const holder = world.holder?.(name)
  if (holder !== undefined) report(refused('NameConflict', 'modelName', nameConflict(name, holder)))
  const { models, faults } = findModels(manifest, world)
  const configs = new Map([...models].map(([model, { config }]) => [model, config]))
  const conversion = toEnsembleConfig(
    manifest,
    (model) => configs.get(model),
    // A shorthand waits for a model that is told of below.
    (fault) => fault.fault !== 'SchemaPending' && report(fault),
  )
  for (const fault of faults) report(fault)
  checkTensors(conversion, configs, report)
  return () => finish(conversion, models)
}

/** Finds what the steps run, and what is wrong with that. What contains the Ensemble itself is not looked up, so that this ends. */
function findModels(
  manifest: EnsembleManifest,
  world: EnsembleWorld,
): { readonly models: ReadonlyMap<string, KnownModel>; readonly faults: readonly EnsembleFault[] } {
  const { spec } = manifest
  const name = modelNameOf(manifest)
  const models = new Map<string, KnownModel>()
  const faults = spec.steps.flatMap((step, index) => {
    const path = refPath(spec, index, step)
    const model = modelOfStep(step)
    const way = findWay(model, name, (other) => world.composes?.(other) ?? [])
    if (way !== undefined) {
      const problem = `an Ensemble cannot contain itself: ${[name, ...way].join(' -> ')}`
      return [refused('CycleDetected', path, problem)]
    }
    const known = world.lookup(model)
    if (typeof known === 'string' || known.readyVersions?.length === 0) {
      return [missingFault(model, path, { known, world })]
    }
    models.set(model, known)
    return [
      ...kindFault(step, known, path),
      ...versionFault(step, known, path),
      ...hedgeFaults(step, known, `${stepPath(spec, index)}.hedge`),
    ]
  })
  return { models, faults }
}

function refPath(spec: EnsembleSpec, index: number, step: EnsembleStepSpec): string {
  return `${stepPath(spec, index)}.${step.modelRef === undefined ? 'ensembleRef' : 'modelRef'}`
}

function missingFault(
  name: string,
  path: string,
  o: { readonly known: ReturnType<EnsembleWorld['lookup']>; readonly world: EnsembleWorld },
): EnsembleFault {
  if (o.known === 'unknown')
    return refused('UnknownModel', `${path}.name`, unknownText(name, o.world))
  const problem =
    o.known === 'absent'
      ? notServedText(name, o.world.resourceNamed?.(name))
      : `the signature of '${name}' is not known yet; it is once the Model or Ensemble of that served name is ready`
  return refused('SchemaPending', path, problem)
}

function unknownText(name: string, { names, resourceNamed, problemOf }: EnsembleWorld): string {
  const problem = problemOf?.(name)
  if (problem !== undefined) return `'${name}' is there, but cannot be read: ${problem}`
  const hint = hintOfResource(name, resourceNamed?.(name)) ?? hintOf(name, names?.() ?? [])
  return `no Model or Ensemble serves '${name}'${hint}`
}

function kindFault(step: EnsembleStepSpec, { config }: KnownModel, path: string) {
  const isEnsemble = isEnsembleConfig(config)
  if (isEnsemble === (step.ensembleRef !== undefined)) return []
  const [got, want] = isEnsemble ? ['an Ensemble', 'ensembleRef'] : ['a Model', 'modelRef']
  return [refused('UnknownModel', path, `'${config.name}' is ${got}; want ${want}`)]
}

function versionFault(step: EnsembleStepSpec, known: KnownModel, path: string) {
  const version = step.modelRef?.version
  const { readyVersions, config } = known
  if (version === undefined || readyVersions === undefined || readyVersions.includes(version)) {
    return []
  }
  const problem = `got ${version}, want a version of '${config.name}' that is served: ${readyVersions.join(', ')}`
  return [refused('UnknownModel', `${path}.version`, problem)]
}

function hedgeFaults({ hedge }: EnsembleStepSpec, { config }: KnownModel, path: string) {
  const fault = hedge && hedgeFault(config)
  return fault === undefined ? [] : [refused('HedgeInvalid', path, fault)]
}

/** Plans it. The checks above find what planning would refuse; what is left is about decoupled models. */
function finish(
  { config, rules, warnings }: EnsembleConversion,
  models: ReadonlyMap<string, KnownModel>,
): EnsembleCheck {
  const wanted = config.ensemble_scheduling?.step.map((step) => step.model_version) ?? []
  const lookup = (name: string) => {
    const known = models.get(name)
    return known && { config: known.config, readyVersions: known.readyVersions ?? [1, ...wanted] }
  }
  try {
    return {
      accepted: true,
      config: completeEnsembleConfig(planEnsemble({ config, rules, lookup })),
      rules,
      models: Object.fromEntries([...models].map(([name, known]) => [name, known.config])),
      warnings,
    }
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    assert(reason === 'ENSEMBLE_INVALID', message)
    return { accepted: false, reason: 'DecoupledInvalid', message: `steps: ${message}` }
  }
}
