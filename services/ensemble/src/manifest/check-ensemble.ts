import { assert, ServeError } from '@tutti/errors'
import { isEnsembleConfig, type ModelConfig } from '@tutti/model-config'
import type { EnsembleRules } from '../ensemble-rules.ts'
import { findWay } from '../graph-walks.ts'
import { completeEnsembleConfig, hedgeFault, planEnsemble } from '../plan-ensemble.ts'
import { checkTensors } from './check-tensors.ts'
import { type AcceptedReason, EnsembleFault, hintOf, refused } from './ensemble-fault.ts'
import { modelOfStep } from './ensemble-graph.ts'
import { stepPath } from './ensemble-references.ts'
import type { EnsembleSpec, EnsembleStepSpec } from './ensemble-spec.ts'
import { type EnsembleManifest, modelNameOf } from './manifests.ts'
import {
  type Claimant,
  hintOfResource,
  type NamedResource,
  nameConflict,
  notServedText,
} from './served-names.ts'
import { toEnsembleConfig } from './to-ensemble-config.ts'

/** What is known of a served name. */
export interface KnownModel {
  /** Completed; of a Model or an Ensemble. */
  readonly config: ModelConfig
  /** Absent where versions are not known (offline): then every version counts as there. */
  readonly readyVersions?: readonly number[]
}

/** What an Ensemble is checked against: the other resources of its namespace. */
export interface EnsembleWorld {
  /**
   * @returns 'pending' for what is there but not known yet, 'absent' for what may still come; 'unknown' for what is not there and
   *   will not come.
   */
  readonly lookup: (servedName: string) => KnownModel | 'unknown' | 'pending' | 'absent'
  /** Every served name, for hints. */
  readonly names?: () => Iterable<string>
  /** Why a model of a repository cannot be read, if that is why it is not served. */
  readonly problemOf?: (servedName: string) => string | undefined
  /** The resource of that `metadata.name`, for hints: it is mistaken for the served name. */
  readonly resourceNamed?: (name: string) => NamedResource | undefined
  /** Who has this Ensemble's served name, if it is somebody else. */
  readonly holder?: (servedName: string) => Claimant | undefined
  /** The served names that another Ensemble runs: as it is written, and as it was accepted. */
  readonly composes?: (servedName: string) => readonly string[]
}

/** Whether an Ensemble is accepted. */
export type EnsembleCheck =
  | {
      readonly accepted: true
      /** Completed. */
      readonly config: ModelConfig
      readonly rules: EnsembleRules
      /** The configurations that it was checked against, by served name. */
      readonly models: Readonly<Record<string, ModelConfig>>
      readonly warnings: readonly string[]
    }
  | {
      readonly accepted: false
      readonly reason: AcceptedReason
      /** One line: a path from `spec` on, what was got, what is wanted. */
      readonly message: string
    }

/** The one check of an Ensemble: the operator's condition `Accepted`, and what `tutti validate` says. */
export function checkEnsemble(manifest: EnsembleManifest, world: EnsembleWorld): EnsembleCheck {
  try {
    return check(manifest, world)
  } catch (error) {
    if (!(error instanceof EnsembleFault)) throw error
    return { accepted: false, reason: error.fault, message: error.message }
  }
}

function check(manifest: EnsembleManifest, world: EnsembleWorld): EnsembleCheck {
  const name = modelNameOf(manifest)
  const { spec } = manifest
  const holder = world.holder?.(name)
  if (holder !== undefined) throw refused('NameConflict', 'modelName', nameConflict(name, holder))
  // First what the manifest alone shows: it is wrong whatever the models are.
  checkShape(manifest)
  checkNesting(spec, name, world)
  const models = findModels(spec, world)
  const conversion = toEnsembleConfig(manifest, (model) => models.get(model)?.config)
  const configs = new Map([...models].map(([model, { config }]) => [model, config]))
  checkTensors(conversion, configs)
  const { config, rules, warnings } = conversion
  const completed = plan(config, rules, models)
  return { accepted: true, config: completed, rules, models: Object.fromEntries(configs), warnings }
}

/** What `toEnsembleConfig` finds without models; a shorthand is left for when they are there. */
function checkShape(manifest: EnsembleManifest): void {
  try {
    toEnsembleConfig(manifest, () => undefined)
  } catch (error) {
    if (!(error instanceof EnsembleFault) || error.fault !== 'SchemaPending') throw error
  }
}

/** An Ensemble that contains itself can never be accepted, so this goes before the lookups. */
function checkNesting(spec: EnsembleSpec, name: string, world: EnsembleWorld): void {
  for (const [index, step] of spec.steps.entries()) {
    const way = findWay(modelOfStep(step), name, (model) => world.composes?.(model) ?? [])
    if (way === undefined) continue
    const problem = `an Ensemble cannot contain itself: ${[name, ...way].join(' -> ')}`
    throw refused('CycleDetected', refPath(spec, index, step), problem)
  }
}

function refPath(spec: EnsembleSpec, index: number, step: EnsembleStepSpec): string {
  return `${stepPath(spec, index)}.${step.modelRef === undefined ? 'ensembleRef' : 'modelRef'}`
}

/** What is wrong whatever is not known goes first, so that who knows more says the same. */
function findModels(spec: EnsembleSpec, world: EnsembleWorld): ReadonlyMap<string, KnownModel> {
  const found = new Map<string, KnownModel>()
  const missing: Parameters<typeof refused>[] = []
  for (const [index, step] of spec.steps.entries()) {
    const name = modelOfStep(step)
    const path = refPath(spec, index, step)
    const known = world.lookup(name)
    if (known === 'unknown') {
      missing.push(['UnknownModel', `${path}.name`, unknownText(name, world)])
    } else if (known === 'absent') {
      missing.push(['SchemaPending', path, notServedText(name, world.resourceNamed?.(name))])
    } else if (known === 'pending' || known.readyVersions?.length === 0) {
      missing.push([
        'SchemaPending',
        path,
        `the signature of '${name}' is not known yet; it is once the Model or Ensemble of that served name is ready`,
      ])
    } else {
      checkKind(step, known, path)
      checkVersion(step, known, path)
      checkHedge(step, known, `${stepPath(spec, index)}.hedge`)
      found.set(name, known)
    }
  }
  const first = missing.find(([reason]) => reason === 'UnknownModel') ?? missing[0]
  if (first !== undefined) throw refused(...first)
  return found
}

function unknownText(name: string, { names, resourceNamed, problemOf }: EnsembleWorld): string {
  const problem = problemOf?.(name)
  if (problem !== undefined) return `'${name}' is there, but cannot be read: ${problem}`
  const hint = hintOfResource(name, resourceNamed?.(name)) ?? hintOf(name, names?.() ?? [])
  return `no Model or Ensemble serves '${name}'${hint}`
}

function checkKind(step: EnsembleStepSpec, { config }: KnownModel, path: string): void {
  const isEnsemble = isEnsembleConfig(config)
  if (isEnsemble === (step.ensembleRef !== undefined)) return
  const [got, want] = isEnsemble ? ['an Ensemble', 'ensembleRef'] : ['a Model', 'modelRef']
  throw refused('UnknownModel', path, `'${config.name}' is ${got}; want ${want}`)
}

function checkVersion(step: EnsembleStepSpec, known: KnownModel, path: string): void {
  const version = step.modelRef?.version
  const { readyVersions, config } = known
  if (version === undefined || readyVersions === undefined || readyVersions.includes(version))
    return
  const served = readyVersions.length === 0 ? 'none' : readyVersions.join(', ')
  const problem = `got ${version}, want a version of '${config.name}' that is served: ${served}`
  throw refused('UnknownModel', `${path}.version`, problem)
}

function checkHedge({ hedge }: EnsembleStepSpec, { config }: KnownModel, path: string): void {
  const fault = hedge && hedgeFault(config)
  if (fault !== undefined) throw refused('HedgeInvalid', path, fault)
}

/** The checks above find what planning would refuse; what is left is about decoupled models. */
function plan(
  config: ModelConfig,
  rules: EnsembleRules,
  models: ReadonlyMap<string, KnownModel>,
): ModelConfig {
  const wanted = config.ensemble_scheduling?.step.map((step) => step.model_version) ?? []
  const lookup = (name: string) => {
    const known = models.get(name)
    return known && { config: known.config, readyVersions: known.readyVersions ?? [1, ...wanted] }
  }
  try {
    return completeEnsembleConfig(planEnsemble({ config, rules, lookup }))
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    assert(reason === 'ENSEMBLE_INVALID', message)
    throw refused('DecoupledInvalid', 'steps', message)
  }
}
