import type { SleepMark } from '@tutti/api'
import { BUILTIN_HOST } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import type { Callee, EnsemblePlan, PlanBuiltin } from '@tutti/graph'
import { type ModelConfig, parseModelVersion } from '@tutti/model-config'
import { MESSAGE_PROTOCOL_VERSION } from '@tutti/protocol'
import { findVersion, type ListedModel, type ListedVersion } from '@tutti/serving'
import type { ModelTarget } from '@tutti/tensor'
import { type ForeignMember, revisionKey } from '@tutti/transport'
import type { EnsembleSource } from './ensemble-source.ts'

type Labels = Readonly<Record<string, readonly string[]>>

/** A revision of a model version that at least one replica serves, or will serve when it has been started. */
export interface LiveRevision {
  readonly revision: string
  /** Configuration, completed and normalised, as the replicas describe it. */
  readonly config: ModelConfig
  /** Key of the signature. Two revisions have equal keys if, and only if, a request to one of them fits the other. */
  readonly signature: string
  /** Label lines by output name. */
  readonly labels: Labels
  /** Number of replicas that serve the revision; 0 while its Model sleeps. */
  readonly replicas: number
}

export interface CatalogVersion extends ListedVersion {
  /** Revision that requests pin; '' if none is known. */
  readonly revision: string
  /** Revisions that are served under this version, the pinned one first; several during a rollout. Empty for an ensemble. */
  readonly revisions: readonly LiveRevision[]
  /** Model version that has no replica left and without which this version cannot run; absent if there is none. */
  readonly lost?: { readonly model: string; readonly version: number }
  /** Terms under which requests wait for the first replica; absent if there is one. The version counts as READY meanwhile. */
  readonly sleep?: SleepMark
}

interface CatalogEntry extends ListedModel {
  /** Label lines by output name. */
  readonly labels: Labels
  readonly versions: readonly CatalogVersion[]
}

/** Makes the catalog's version of a model version whose replicas are gone. */
export function lostVersion(
  model: string,
  { version, revision }: Pick<CatalogVersion, 'version' | 'revision'>,
): CatalogVersion {
  const lost = { model, version }
  const reason = 'no replica serves it'
  return { version, revision, state: 'UNAVAILABLE', reason, revisions: [], lost }
}

/** A model that step replicas execute. Its config and labels are those of the latest READY version. */
export interface CatalogModel extends CatalogEntry {
  readonly kind: 'model'
}

/** A model that the router itself executes as a graph of other models. */
export interface CatalogEnsemble extends CatalogEntry {
  readonly kind: 'ensemble'
  /** Plan of the ensemble; absent if it is not valid, and then no version is READY. */
  readonly plan?: EnsemblePlan
  /** Key of the plan. Two plans of the ensemble have equal keys if, and only if, they are the same. */
  readonly planKey?: string
  /** True if the ensemble lacks a composing model that a step may still bring. */
  readonly isWaiting: boolean
  /** Composing models that no step has ever described, those of nested ensembles included; empty unless it waits. */
  readonly missing: readonly string[]
  /** The source that was served last; requests use it while it has a plan. */
  readonly source?: EnsembleSource
  /** Desired ensemble that cannot be served in place of this one, with the reason why. */
  readonly pending?: CatalogEnsemble
  /** Reason why the ensemble was taken out of service. */
  readonly cause?: string
}

/**
 * Everything that clients can name at one moment. Never changes: a request that holds a catalog has pinned
 * every version and revision that it will use, nested ensembles included (invariant 4).
 */
export interface Catalog {
  readonly models: ReadonlyMap<string, CatalogModel | CatalogEnsemble>
}

/** The models and ensembles of a catalog that is being built, by name. */
export type CatalogEntries = Map<string, CatalogModel | CatalogEnsemble>

export const EMPTY_CATALOG: Catalog = { models: new Map() }

/** A part of an ensemble's graph, under one catalog. */
export interface ResolvedPart {
  /** Text that its requests carry. */
  readonly text: string
  /** The models that its steps and their fallbacks run, each once. */
  readonly models: readonly ResolvedEntry[]
  /** Keys of all that a replica needs to run it. */
  readonly keys: readonly string[]
}

/** A READY version of a catalog entry, as requests use it. */
export interface ResolvedEntry {
  readonly catalog: Catalog
  readonly entry: CatalogModel | CatalogEnsemble
  /** Configuration of the pinned revision. */
  readonly config: ModelConfig
  readonly labels: Labels
  readonly version: CatalogVersion
  readonly pinned: ModelTarget
  /** Key of `pinned`, by which its replicas are found. */
  readonly pinnedKey: string
  /** Names of all outputs. */
  readonly outputs: readonly string[]
  /** Plan of an ensemble; undefined for a model of the steps. */
  readonly plan: EnsemblePlan | undefined
  /** Set for a part of an ensemble's graph, whose own plan `plan` is. */
  readonly part?: ResolvedPart
  /** Entries that the steps of an ensemble use, from the same catalog; found by its first request. */
  steps?: readonly ResolvedEntry[]
}

/**
 * Finds the version that a request for `name` gets.
 *
 * @param version - as the client wrote it; '' is the highest READY one.
 * @throws ServeError with the lookup texts of triton-semantics 4.5; STEP_UNAVAILABLE if all replicas are gone.
 */
export function lookupModel(catalog: Catalog, name: string, version: string): ResolvedEntry {
  // Requests reach built-ins through ensembles alone.
  const offered = name === BUILTIN_HOST ? EMPTY_CATALOG : catalog
  return lookupVersion(offered, name, parseModelVersion(version), version)
}

/**
 * Finds a version as `lookupModel` does, by a parsed version. undefined means the highest READY version.
 *
 * @param written - the version as the client wrote it, for texts.
 */
export function lookupVersion(
  catalog: Catalog,
  name: string,
  version: number | undefined,
  written?: string,
): ResolvedEntry {
  refuseLost(catalog, name, version)
  const place = findVersion(catalog.models, name, version, written)
  const { model: entry, version: found, ...latest } = place
  return toResolved(catalog, entry, { config: latest.config, version: found })
}

function toResolved(
  catalog: Catalog,
  entry: CatalogModel | CatalogEnsemble,
  { version: found, ...latest }: Pick<ResolvedEntry, 'config' | 'version'>,
): ResolvedEntry {
  const pinned = found.revisions[0]
  const config = pinned?.config ?? latest.config
  const target = { model: entry.name, version: found.version, revision: found.revision }
  return {
    catalog,
    entry,
    config,
    labels: pinned?.labels ?? entry.labels,
    version: found,
    pinned: target,
    pinnedKey: revisionKey(target),
    outputs: config.output.map((output) => output.name),
    plan: entry.kind === 'ensemble' ? entry.plan : undefined,
  }
}

/**
 * Finds the version that a step, or its fallback, calls. One whose replicas are gone is found too: they may come back, and the call
 * tells if they do not.
 *
 * @throws ServeError if the model cannot be found.
 */
export function lookupStep(catalog: Catalog, { model, version }: Callee): ResolvedEntry {
  const wanted = version === -1 ? undefined : version
  const entry = catalog.models.get(model)
  const lost = entry && findLostVersion(entry, wanted)
  if (lost === undefined || entry?.config === undefined)
    return lookupVersion(catalog, model, wanted)
  return toResolved(catalog, entry, { config: entry.config, version: lost })
}

/**
 * Finds the version of every step at once, before anything runs (triton-semantics 1.4.2), and keeps them in `ensemble.steps`.
 *
 * @throws ServeError if a step's model cannot be found; its text begins with the ensemble's name.
 */
export function resolveSteps(
  ensemble: ResolvedEntry,
  plan: EnsemblePlan,
): readonly ResolvedEntry[] {
  const steps = plan.steps.map(({ name, model, version, call, builtin }) => {
    try {
      // A step that has an answer for its failures fails when it is called.
      const found =
        call.onError === undefined
          ? lookupVersion(ensemble.catalog, model, version === -1 ? undefined : version)
          : lookupStep(ensemble.catalog, { model, version })
      return builtin === undefined ? found : withBuiltin(found, builtin)
    } catch (error) {
      throw ServeError.from(error)
        .withPrefix(`in ensemble '${plan.name}', `)
        .withDetails({ ensemble: plan.name, step: name, model })
    }
  })
  ensemble.steps = steps
  return steps
}

/** Puts a built-in in the place of the model whose replicas run it. */
function withBuiltin(host: ResolvedEntry, { config }: PlanBuiltin): ResolvedEntry {
  return {
    ...host,
    entry: { ...host.entry, name: config.name },
    config,
    labels: {},
    outputs: config.output.map(({ name }) => name),
  }
}

/** Lists the models and ensembles that clients may know of. */
export function listedEntries({ models }: Catalog): readonly (CatalogModel | CatalogEnsemble)[] {
  return [...models.values()].filter(({ name }) => name !== BUILTIN_HOST)
}

/** Tells whether an entry has a READY version, which requests reach. */
export function hasReadyVersion(entry: CatalogModel | CatalogEnsemble | undefined): boolean {
  return entry?.versions.some((v) => v.state === 'READY') ?? false
}

/** Returns the reason why an entry is not served, or else that of its first version with a reason; '' if there is none. */
export function whyNotServed(entry: CatalogModel | CatalogEnsemble): string {
  if (entry.kind === 'ensemble' && entry.cause !== undefined) return entry.cause
  return entry.reason || (entry.versions.find((v) => v.reason !== '')?.reason ?? '')
}

/** Finds the version that a request would get, if its replicas are gone. */
function findLostVersion(
  entry: CatalogModel | CatalogEnsemble,
  version: number | undefined,
): CatalogVersion | undefined {
  if (version === undefined && hasReadyVersion(entry)) return undefined
  const found =
    version === undefined
      ? entry.versions.findLast((v) => v.lost !== undefined)
      : entry.versions.find((v) => v.version === version)
  return found?.lost === undefined ? undefined : found
}

/** Refuses a model whose replicas are gone. It is not unknown: clients may try again. */
function refuseLost(catalog: Catalog, name: string, version: number | undefined): void {
  const entry = catalog.models.get(name)
  const found = entry && findLostVersion(entry, version)
  if (entry === undefined || found?.lost === undefined) return
  const error = noReplica(found.lost)
  if (entry.kind === 'model') throw error
  throw error.withPrefix(`in ensemble '${name}', `).withDetails({ ensemble: name })
}

/**
 * Makes the error for an ensemble that waits for steps. It replaces the error that the ensemble is unknown, because clients may
 * try again.
 *
 * @param unknown - the error of the lookup; its text stays first.
 */
export function noStepYet(unknown: ServeError, ensemble: CatalogEnsemble): ServeError {
  const { name, missing } = ensemble
  const models = missing.map((model) => `'${model}'`).join(', ')
  const text = `${unknown.message}: ensemble '${name}' waits for a step that serves ${models}`
  const details = { ensemble: name, model: missing.join(', ') }
  return new ServeError('STEP_UNAVAILABLE', text, { details, cause: unknown })
}

/**
 * Makes the error for a model that only steps of other protocol versions serve.
 *
 * @param error - the error of the lookup; its text stays first.
 */
export function onlyForeign(error: ServeError, foreign: ForeignMember): ServeError {
  const { member, oldestProtocol, newestProtocol } = foreign
  const versions =
    oldestProtocol === newestProtocol ? oldestProtocol : `${oldestProtocol} to ${newestProtocol}`
  const text = `${error.message}: step '${member}' speaks protocol version ${versions}, this router ${MESSAGE_PROTOCOL_VERSION}`
  const details = { ...error.details, replica: member }
  return new ServeError('STEP_UNAVAILABLE', text, { details, cause: error })
}

/** Makes the error for a model version that no replica of any revision serves. */
export function noReplica(o: { readonly model: string; readonly version: number }): ServeError {
  const text =
    o.model === BUILTIN_HOST
      ? 'no replica runs built-ins (tutti step --builtins)'
      : `no replica serves model '${o.model}' version ${o.version}`
  const details = { model: o.model, version: String(o.version) }
  return new ServeError('STEP_UNAVAILABLE', text, { details })
}
