import type { Clock } from '@tutti/chassis'
import type { ModelConfig } from '@tutti/model-config'
import type { StatisticsRecorder } from '@tutti/telemetry'
import type { ObservedModel, RequestObserver } from '@tutti/tensor'
import type { SchedulerEvents } from '../log-events.ts'
import type { AutoDelay } from '../queue/auto-delay.ts'
import type { DeclaredOutputs } from './declared-outputs.ts'
import type { DeviceWatch } from './device-watch.ts'
import type { ResponseOrder } from './response-order.ts'

/** The parts that all executions of one model version share. */
export interface ExecutionContext {
  readonly clock: Clock
  /** Counts executions. */
  readonly statistics: Pick<StatisticsRecorder, 'recordExecution'>
  /** Gets the events of all requests, the statistics among others. */
  readonly observer: RequestObserver
  readonly model: ObservedModel
  readonly events: SchedulerEvents
  readonly config: ModelConfig
  readonly outputs: DeclaredOutputs
  readonly hasReshape: boolean
  /** A decoupled model's final response goes out at once; an ordinary one waits for the execution's times. */
  readonly isDecoupled: boolean
  /** Present with `preserve_ordering`. */
  readonly order?: ResponseOrder
  /** Present with `maxQueueDelay: auto`: it learns how long executions take. */
  readonly autoDelay?: AutoDelay
  /** Learns how executions end; absent where no instance can use a device. */
  readonly deviceWatch?: Pick<DeviceWatch, 'executed'> | undefined
  /** The origin that every error of this model version names. */
  readonly details: { readonly model: string; readonly version: string; readonly replica: string }
}
