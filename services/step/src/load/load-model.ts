import { ServeError } from '@tutti/errors'
import type { RepositoryModel } from '@tutti/repository'
import type { HostedModel, HostedVersion } from '../hosted-model.ts'
import type { StepEvents } from '../log-events.ts'
import { loadReason } from './load-reason.ts'
import { loadVersion, type VersionLoadOptions } from './load-version.ts'
import { type PreparedModel, prepareModel } from './prepare-model.ts'
import { ineffectiveSettings } from './supported-settings.ts'

/** Loads a model with all versions of its policy. A failure is part of the result. @returns undefined for an ensemble. */
export async function loadModel(
  model: RepositoryModel,
  o: VersionLoadOptions,
  events: StepEvents,
): Promise<HostedModel | undefined> {
  let prepared: PreparedModel | undefined
  try {
    prepared = await prepareModel(model, o)
  } catch (error) {
    const { message } = ServeError.from(error)
    events.modelRefused(model.name, message)
    return { name: model.name, labels: {}, versions: new Map(), reason: message }
  }
  if (prepared === undefined) return undefined
  const { config, labels } = prepared
  for (const [field, flag] of ineffectiveSettings(config)) {
    events.settingIneffective(model.name, field, flag)
  }
  const versions = new Map<number, HostedVersion>()
  for (const version of prepared.versions) {
    versions.set(version, await hostVersion(prepared, version, o, events))
  }
  await withdrawPartial(model.name, [...versions.values()], events)
  return { name: model.name, config, labels, versions, reason: '' }
}

async function hostVersion(
  prepared: PreparedModel,
  version: number,
  o: VersionLoadOptions,
  events: StepEvents,
): Promise<HostedVersion> {
  const { name } = prepared.model
  events.versionLoading(name, version)
  try {
    const { revision, serving } = await loadVersion(prepared, version, o)
    events.versionReady(name, version, revision, serving.loadSeconds)
    return { version, revision, state: 'READY', reason: '', serving }
  } catch (error) {
    events.versionFailed(name, version, ServeError.from(error))
    const reason = loadReason(error)
    return { version, revision: '', state: 'UNAVAILABLE', reason, serving: undefined }
  }
}

/** A load is all or nothing over the versions, as in Triton: one that fails takes the others with it. */
async function withdrawPartial(
  model: string,
  versions: readonly HostedVersion[],
  events: StepEvents,
): Promise<void> {
  if (versions.every((version) => version.serving !== undefined)) return
  for (const version of versions) await unloadVersion(model, version, events)
}

/** Releases a version's engine. An error there is logged: the version is gone for everybody in any case. */
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
    await serving.loaded.close()
  } catch (error) {
    events.closeFailed(model, version.version, ServeError.from(error))
  }
}
