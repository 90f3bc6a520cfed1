import type { ModelConfig, ModelStatistics } from '@tutti/model-config'

export type VersionState = 'READY' | 'LOADING' | 'UNLOADING' | 'UNAVAILABLE'

/** One model version that a step process knows. */
export interface ServedVersion {
  readonly version: number
  readonly revision: string
  readonly state: VersionState
  /** `<Code>: <text>` when the load failed (triton-semantics 3.5), '' otherwise. */
  readonly reason: string
  /** True if, besides its state, it has to be asked whether it is ready. */
  readonly judgesReadiness?: boolean
}

/** One model that a step process knows, whether it loaded or not. */
export interface ServedModel {
  readonly name: string
  /** Completed and normalised; absent if the configuration itself was refused. */
  readonly config?: ModelConfig
  /** Output name -> label lines. */
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** Ascending by version. */
  readonly versions: readonly ServedVersion[]
  /** Why there is no usable configuration; '' if there is one. */
  readonly reason: string
}

/** A model version as requests pin it: served on for them after it was replaced. */
export interface PinnedVersion {
  readonly model: string
  readonly version: number
  readonly revision: string
}

/** What a step process answers when a router asks what it serves. */
export interface StepDescription {
  readonly replica: string
  readonly models: readonly ServedModel[]
}

/** The questions that a router asks a step process besides inference. */
export interface StepControl {
  describe(): Promise<StepDescription>
  /** '' for all models, '' for all versions. */
  statistics(model: string, version: string): Promise<readonly ModelStatistics[]>
  /** What a version that reports its own readiness answers. Absent where none does. */
  isReady?(model: string, version: number): Promise<boolean>
}
