/**
 * Where a request is.
 * - `waiting`: for an instance.
 * - `running`: at the engine, which has not sent its last. Only now its responses pass.
 * - `held`: the engine has sent its last, which waits for the times of the execution.
 * - `recorded`: the statistics have the outcome, which waits for its turn (`preserve_ordering`).
 * - `answered`: the caller has had its final response or its failure.
 * - `abandoned`: so too, but by the scheduler, while the request was past `waiting`. What the engine sends is dropped.
 */
export type ScheduledState = 'waiting' | 'running' | 'held' | 'recorded' | 'answered' | 'abandoned'
