/** What an Ensemble says beyond its ModelConfig: config.pbtxt has no words for it. */
export interface EnsembleRules {
  /** By step, in the config's order; unique. Errors, details and metrics name a step so. */
  readonly stepNames: readonly string[]
  /**
   * By step, the indexes of steps that must have ended before it begins, whether it reads what they make or not. It orders
   * steps that run and makes none run: one that no requested output needs is not waited for.
   */
  readonly dependsOn: readonly (readonly number[])[]
  /** The longest time for a request, in milliseconds; absent for none. A client's deadline may be sooner. */
  readonly timeoutMs?: number
  /** Requests that a router executes at the same time; more are refused at once. Absent for no bound. */
  readonly maxInFlightRequests?: number
}
