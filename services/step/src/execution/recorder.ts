import type { ExecutionTimes } from '@tutti/backends'

/** Triton's classes of failure, the label `reason` of nv_inference_request_failure. */
export type FailureClass = 'REJECTED' | 'CANCELED' | 'BACKEND' | 'OTHER'

/** Where a scheduler puts the figures of one model version. Durations in nanoseconds. */
export interface ExecutionRecorder {
  /** A request was answered with a result. `batchSize` is the client's own, at least 1. */
  success(
    batchSize: number,
    o: { readonly requestNs: number; readonly queueNs: number; readonly times: ExecutionTimes },
  ): void
  /** A model execution ended. `batchSize` is the sum over its requests. */
  execution(batchSize: number, times: ExecutionTimes): void
  failure(reason: FailureClass, requestNs: number): void
  /** Requests that wait in the queue now. */
  pending(count: number): void
}
