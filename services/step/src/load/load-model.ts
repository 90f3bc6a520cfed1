import { isDeepStrictEqual } from 'node:util'
import { ServeError } from '@tutti/errors'
import { type ModelConfig, selectVersions } from '@tutti/model-config'
import type { OpenedModel } from '@tutti/repository'
import { loadFailed, pollFailed, versionFailures } from '@tutti/serving'
import type { StepEvents } from '../log-events.ts'
import { closeServing, type HostedModel, type HostedVersion } from './hosted-model.ts'
import { leavesIdle } from './instance-devices.ts'
import { loadVersion, type VersionLoadOptions } from './load-version.ts'
import {
  type PreparedModel,
  type PreparedVersion,
  prepareModel,
  prepareVersion,
} from './prepare-model.ts'
import { formsNoBatches, ineffectiveSettings } from './supported-settings.ts'

/** The result of a load: the model as it is now, and the error if it does not serve. */
export interface LoadOutcome {
  readonly model: HostedModel
  /** Error that the load request gets. Absent if every version is READY. */
  readonly error?: ServeError
}

export interface ModelLoadOptions {
  /** Aborts when the model is no longer wanted, or its time is over. */
  readonly signal: AbortSignal
  readonly settings: VersionLoadOptions
  readonly events: StepEvents
  /** Called with what the load waits for from now on, e.g. `version 1, engine python`. */
  readonly report: (doing: string) => void
  /** Called with the model as it is while its versions load. */
  loading(model: HostedModel): void
}

/**
 * Loads a model with all versions of its policy: all of them, or none. A failure is part of the result; nothing stays in memory
 * then.
 *
 * @returns undefined for an ensemble.
 */
export async function loadModel(
  opened: OpenedModel,
  o: ModelLoadOptions,
): Promise<LoadOutcome | undefined> {
  const { model, digest, filesDigest, release } = opened
  const { name } = model
  const refuse = (reason: string, error: ServeError, config?: ModelConfig): LoadOutcome => {
    o.events.modelRefused(name, reason)
    const refused = refusedModel(name, reason, release)
    return { model: { ...refused, ...(config !== undefined && { config }) }, error }
  }
  let prepared: PreparedModel | undefined
  o.report('its configuration')
  try {
    prepared = await prepareModel(model, { ...o.settings, signal: o.signal })
  } catch (thrown) {
    const error = ServeError.from(thrown)
    return refuse(error.message, pollFailed(name, error))
  }
  if (prepared === undefined) return undefined
  let numbers: readonly number[]
  try {
    numbers = selectVersions(prepared.config, model.versions)
  } catch (thrown) {
    const { message } = ServeError.from(thrown)
    return refuse(message, loadFailed(name, message, thrown), prepared.config)
  }
  return loadVersions(prepared, numbers, { name, digest, filesDigest, release }, o)
}

/** Makes the entry of a model of which nothing can be loaded. @param release - lets go of the files that it was read from. */
export function refusedModel(
  name: string,
  reason: string,
  release: () => Promise<void>,
): HostedModel {
  return { name, labels: {}, versions: new Map(), reason, digest: '', release }
}

async function loadVersions(
  prepared: PreparedModel,
  numbers: readonly number[],
  opened: Pick<HostedModel, 'name' | 'digest' | 'filesDigest' | 'release'>,
  o: ModelLoadOptions,
): Promise<LoadOutcome> {
  const { name } = opened
  const read = await prepareVersions(prepared, numbers, { ...o.settings, signal: o.signal })
  const known = [...read.values()].flatMap((one) => (one instanceof ServeError ? [] : one)).at(-1)
  const { config, labels } = known ?? { config: prepared.config, labels: {} }
  logSettings(config, name, o)
  const whole = { ...opened, config, labels, reason: '' }
  const loading = new Map(numbers.map((number) => [number, toLoading(number)]))
  o.loading({ ...whole, digest: '', release: async () => {}, versions: loading })
  const versions = new Map<number, HostedVersion>()
  for (const [version, one] of read) {
    const hosted = await hostVersion({ name, version, one }, o)
    const isOwn = !(one instanceof ServeError) && one.config !== config
    const own = isOwn ? { own: { config: one.config, labels: one.labels } } : {}
    versions.set(version, { ...hosted, ...own })
  }
  const failed = [...versions.values()].filter((v) => v.serving === undefined)
  if (failed.length === 0) return { model: { ...whole, versions } }
  // A load is all or nothing over the versions, as in Triton: one that fails takes the others with it.
  for (const version of versions.values()) await unloadVersion(name, version, o.events)
  const error = loadFailed(name, versionFailures(failed))
  return { model: { ...whole, digest: '', versions }, error }
}

/** Prepares versions. Versions with equal configurations share one object. */
async function prepareVersions(
  prepared: PreparedModel,
  numbers: readonly number[],
  settings: VersionLoadOptions & { readonly signal: AbortSignal },
): Promise<ReadonlyMap<number, PreparedVersion | ServeError>> {
  const read = new Map<number, PreparedVersion | ServeError>()
  for (const number of numbers) {
    const one = await prepareVersion(prepared, number, settings).catch((error: unknown) =>
      ServeError.from(error),
    )
    const same = [...read.values()].find((other) => isDeepStrictEqual(other, one))
    read.set(number, one instanceof ServeError ? one : (same ?? one))
  }
  return read
}

/** Logs what a configuration says that has no effect here. */
function logSettings(
  config: ModelConfig,
  name: string,
  { settings, events }: ModelLoadOptions,
): void {
  const { cache, limiter, metrics, hostPolicies } = settings
  const has = {
    hasLimiter: limiter !== undefined,
    hasCache: cache !== undefined,
    hasHistograms: metrics?.hasHistograms === true,
    hostPolicies,
  }
  for (const [field, flag] of ineffectiveSettings(config, has)) {
    events.settingIneffective(name, field, flag)
  }
  const samples = config.model_warmup.filter(({ batch_size: size }) => size < 1)
  for (const { name: sample } of samples) events.warmUpSampleEmpty(name, sample)
  if (formsNoBatches(config)) events.batchingIneffective(name)
  if (leavesIdle(config, settings.devices)) events.acceleratorIdle(name)
}

function toLoading(version: number): HostedVersion {
  return { version, revision: '', state: 'LOADING', reason: '', serving: undefined }
}

async function hostVersion(
  o: {
    readonly name: string
    readonly version: number
    readonly one: PreparedVersion | ServeError
  },
  { settings, events, signal, report }: ModelLoadOptions,
): Promise<HostedVersion> {
  const { name, version, one } = o
  events.versionLoading(name, version)
  try {
    if (one instanceof ServeError) throw one
    const tell = (doing: string): void => report(`version ${version}, ${doing}`)
    const limits = { ...settings, signal, report: tell }
    const { revision, serving } = await loadVersion(one, version, limits)
    events.versionReady(name, version, revision, serving.loadSeconds)
    return { version, revision, state: 'READY', reason: '', serving }
  } catch (error) {
    events.versionFailed(name, version, ServeError.from(error))
    const reason = loadReason(error)
    return { version, revision: '', state: 'UNAVAILABLE', reason, serving: undefined }
  }
}

/**
 * Writes why a version is UNAVAILABLE, as the repository index prints it: `<Code>: <text>`, with Triton's code names
 * (triton-semantics 3.5).
 */
export function loadReason(error: unknown): string {
  const { code, message } = ServeError.from(error)
  if (code === 'UNIMPLEMENTED') return `Unsupported: ${message}`
  const words = code.replaceAll('_', ' ')
  return `${words.charAt(0)}${words.slice(1).toLowerCase()}: ${message}`
}

/** Closes a version that is no longer served. An error is logged, not thrown: the version is gone in any case. */
export async function unloadVersion(
  model: string,
  version: HostedVersion,
  events: StepEvents,
): Promise<void> {
  const { serving } = version
  if (serving === undefined) return
  version.serving = undefined
  version.state = 'UNAVAILABLE'
  version.reason = 'unloaded'
  try {
    await closeServing(serving)
  } catch (error) {
    events.closeFailed(model, version.version, ServeError.from(error))
  }
}
