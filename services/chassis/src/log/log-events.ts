/** The messages of the lifecycle's log lines. */
export const LIFECYCLE_EVENTS = {
  starting: 'starting',
  startFailed: 'start failed',
  startGivenUp: 'start given up',
  started: 'started',
  stopping: 'stopping',
  givenUp: 'the process must be replaced, stopping',
  draining: 'draining',
  drained: 'drained',
  drainFailed: 'drain failed',
  closed: 'closed',
  closeFailed: 'close failed',
  secondSignal: 'second signal, exiting at once',
  failed: 'lifecycle failed',
  exited: 'exiting',
} as const

/** The messages of tracing. */
export const TRACING_EVENTS = { lost: 'the collector did not take spans' } as const

/** The messages of transfers, such as of models from a bucket. */
export const TRANSFER_EVENTS = { underWay: 'fetching', ended: 'transfer ended' } as const

/** The messages of a server that listens; the fields say where. */
export const SERVING_EVENTS = {
  ready: 'server ready',
  notReady: 'listening, not ready yet',
} as const
