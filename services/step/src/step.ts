import type { ServedModel, StepControl } from '@tutti/ensemble'
import type { LoadOverrides } from '@tutti/repository'
import type { FindExecutor } from '@tutti/tensor'

/** How busy a step process is, for whoever chooses between replicas. */
export interface StepLoad {
  /** Accepted and not yet answered, in requests. */
  readonly inFlight: number
  /** Instances that execute nothing. */
  readonly freeSlots: number
  /** True from the begin of `drain` on: no new work. */
  readonly isDraining: boolean
  /** Results that came after their caller was gone, since the start. */
  readonly droppedResults: number
  readonly models: readonly VersionLoad[]
}

export interface VersionLoad {
  readonly model: string
  readonly version: number
  readonly inFlight: number
  readonly queued: number
  readonly freeSlots: number
  /** Requests that can execute at the same time. */
  readonly slots: number
}

/** Loads and unloads models while the process serves. */
export interface StepModels {
  /**
   * Loads a model as it is on disk, or as the overrides say, and resolves when all its versions are READY; what is served stays
   * until then. At once if nothing changed.
   * @throws ServeError with the texts of triton-semantics 3.3.
   */
  load(name: string, overrides?: LoadOverrides): Promise<void>
  /** Takes a model out of service; what was accepted is finished in the background. Unknown names are no error. */
  unload(name: string): void
}

/** A step process's models: checks requests, schedules, executes, answers. */
export interface Step {
  /** What executes the requests to a model version; it answers each with one final response, or fails. */
  readonly executor: FindExecutor
  readonly control: StepControl
  readonly models: StepModels
  /** What `describe` says, by name. */
  served(): readonly ServedModel[]
  /** [model, version, revision] of what it still executes for requests that pinned it, after it was replaced or unloaded. */
  retired(): readonly (readonly [string, number, string])[]
  /** Calls `listener` when what `describe` or `isDraining` say has changed. @returns ends it. */
  onChange(listener: () => void): () => void
  load(): StepLoad
  /** Takes no new work and resolves when all accepted requests are answered. */
  drain(): Promise<void>
  /** Answers what waits with SERVER_STOPPING and what runs with ENGINE_STOPPED, and releases the engines. */
  close(): Promise<void>
  /** After `close`: an engine goes on with what cannot be interrupted, and was not waited for. */
  readonly isBusy: boolean
}
