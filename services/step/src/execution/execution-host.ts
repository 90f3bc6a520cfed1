import type { Clock } from '@tutti/chassis'
import type { StatisticsRecorder } from '@tutti/server'
import type { SchedulerEvents } from '../log-events.ts'
import type { OutputContract } from './output-contract.ts'
import type { ResponseOrder } from './response-order.ts'

/** What all executions of one model version share. */
export interface ExecutionHost {
  readonly clock: Clock
  readonly statistics: StatisticsRecorder
  readonly outputs: OutputContract
  readonly events: SchedulerEvents
  /** A decoupled model's final response goes out at once; an ordinary one waits for the execution's times. */
  readonly isDecoupled: boolean
  /** Present with `preserve_ordering`. */
  readonly order?: ResponseOrder
  /** What every error of this model version says about its origin. */
  readonly details: { readonly model: string; readonly version: string; readonly replica: string }
  /** Called for each result that nobody waited for any more. */
  dropped(): void
}
