import type { EnsemblePlan } from '@tutti/ensemble'
import type { ModelConfig, ModelStatistics } from '@tutti/model-config'
import type { CaptureState, StepTotals, WantedRequest } from '@tutti/server'

/** A model or ensemble as its router knows it, also one that is not ready. */
export interface ConsoleModel {
  readonly name: string
  readonly kind: 'model' | 'ensemble'
  /** Absent if it was refused. */
  readonly config?: ModelConfig
  /** Of an ensemble that can run. */
  readonly plan?: EnsemblePlan
}

/** What `RequestCaptures.wait` takes. */
export interface WaitOptions {
  readonly page: string
  readonly turn: string
  readonly wanted: WantedRequest
}

/** What the console shows beside what clients can ask; never more than the caller's index names. */
export interface ConsoleSource {
  find(name: string): ConsoleModel | undefined
  /**
   * As `InferenceBackend.statistics`, of several models in few questions; nothing of those that are not known.
   *
   * @throws ServeError if a step does not answer.
   */
  statisticsOf(names: ReadonlySet<string>): Promise<readonly ModelStatistics[]>
  /**
   * The request that a page waits for, once it has ended; see `RequestCaptures`.
   *
   * @throws ServeError OVERLOADED if too many pages wait.
   */
  waitForRequest(o: WaitOptions): CaptureState
  stopWaiting(o: Pick<WaitOptions, 'page' | 'turn'>): void
  /** Of the steps of an ensemble. */
  stepTotals(ensemble: string): readonly StepTotals[]
}
