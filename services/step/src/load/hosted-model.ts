import type { ServedModel, VersionState } from '@tutti/api'
import type { LoadedModel } from '@tutti/backends'
import type { ModelConfig } from '@tutti/model-config'
import type { StatisticsRecorder } from '@tutti/telemetry'
import type { DeviceWatch } from '../execution/device-watch.ts'
import type { CheckedScheduler } from '../execution/scheduler.ts'
import type { InstanceLimits } from '../limiter/rate-limiter.ts'
import type { PreparedVersion } from './prepare-model.ts'

/** A version in memory, with all that a request to it needs. */
export interface Serving extends CheckedScheduler {
  readonly loaded: LoadedModel
  readonly statistics: StatisticsRecorder
  readonly deviceWatch?: Pick<DeviceWatch, 'isLost'> | undefined
  /** Present with a rate limiter; closed after `loaded`. */
  readonly limits?: InstanceLimits | undefined
  /** Number of requests that can execute at the same time. */
  readonly slots: number
  /** Folders of the version and of its model, absolute paths. */
  readonly directories: readonly string[]
  /** Seconds that the load took, warm-up included. */
  readonly loadSeconds: number
}

interface ClosedServing extends Pick<Serving, 'limits' | 'deviceWatch'> {
  readonly loaded: LoadedModel | undefined
}

/** One version of a hosted model. Only the table of models changes it. */
export interface HostedVersion {
  readonly version: number
  /** '' if loading failed before it was known. */
  readonly revision: string
  state: VersionState
  reason: string
  /** Present exactly while the state is READY. */
  serving: Serving | undefined
  /** Configuration and labels of the version, if they are not the model's. */
  readonly own?: Pick<PreparedVersion, 'config' | 'labels'>
}

/** One model of the repository as this process knows it. */
export interface HostedModel {
  readonly name: string
  /**
   * Configuration of the latest version. Absent if it was refused. There are no versions then, nor where the version policy chooses
   * none.
   */
  readonly config?: ModelConfig
  readonly labels: Readonly<Record<string, readonly string[]>>
  readonly versions: ReadonlyMap<number, HostedVersion>
  /** Why there is no version; '' if there is one. */
  readonly reason: string
  /** Digest of the files that it was loaded from; '' exactly while none of its versions is served. */
  readonly digest: string
  /**
   * Digest of these files alone, without a configuration that a load request gave; absent if there are none on disk, or none is
   * served.
   */
  readonly filesDigest?: string
  /** Lets go of the files that it was loaded from. To be called once no version of it is in memory. */
  readonly release: () => Promise<void>
}

/** Releases the engine, if it was loaded, and then what its instances held. */
export async function closeServing({ loaded, limits, deviceWatch }: ClosedServing): Promise<void> {
  try {
    if (deviceWatch?.isLost !== true) await loaded?.close()
  } finally {
    limits?.close()
  }
}

/** Tells whether a load of the model succeeded and it was not unloaded since. */
export function isServed(model: HostedModel | undefined): boolean {
  return model !== undefined && model.digest !== ''
}

export function toServedModel(model: HostedModel): ServedModel {
  return {
    name: model.name,
    ...(model.config !== undefined && { config: model.config }),
    labels: model.labels,
    versions: [...model.versions.values()].map(
      ({ version, revision, state, reason, serving, own }) => ({
        version,
        revision,
        state,
        reason,
        ...(own !== undefined && { own }),
        ...(serving?.loaded.isReady !== undefined && { judgesReadiness: true }),
      }),
    ),
    reason: model.reason,
  }
}
