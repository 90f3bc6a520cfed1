/** `count` events that took `ns` nanoseconds in all. */
export interface StatisticDuration {
  readonly count: bigint
  readonly ns: bigint
}

export interface BatchStatistics {
  readonly batchSize: bigint
  readonly computeInput: StatisticDuration
  readonly computeInfer: StatisticDuration
  readonly computeOutput: StatisticDuration
}

/** The statistics of one model version, as the v2 statistics extension defines them. */
export interface ModelStatistics {
  readonly name: string
  readonly version: string
  /** Time of the last inference, in milliseconds since the epoch; 0 if there was none. */
  readonly lastInference: bigint
  readonly inferenceCount: bigint
  readonly executionCount: bigint
  readonly success: StatisticDuration
  readonly fail: StatisticDuration
  readonly queue: StatisticDuration
  readonly computeInput: StatisticDuration
  readonly computeInfer: StatisticDuration
  readonly computeOutput: StatisticDuration
  readonly cacheHit: StatisticDuration
  readonly cacheMiss: StatisticDuration
  readonly batchStats: readonly BatchStatistics[]
}
