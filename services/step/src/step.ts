import type { ServedModel, StepControl } from '@tutti/ensemble'
import type { EnvelopeHandler } from '@tutti/transport'

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
}

/** A step process's models behind one handler: takes envelopes, schedules, executes, answers. */
export interface Step {
  /** Answers every envelope with exactly one final response. */
  readonly handle: EnvelopeHandler
  readonly control: StepControl
  /** What `describe` says, by name. */
  served(): readonly ServedModel[]
  /** Calls `listener` when what `describe` or `isDraining` say has changed. @returns ends it. */
  onChange(listener: () => void): () => void
  load(): StepLoad
  /** Takes no new work and resolves when all accepted requests are answered. */
  drain(): Promise<void>
  /** Answers what waits with SERVER_STOPPING and what runs with ENGINE_STOPPED, and releases the engines. */
  close(): Promise<void>
}
