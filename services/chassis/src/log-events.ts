/** The messages of the lifecycle's log lines. */
export const LIFECYCLE_EVENTS = {
  starting: 'starting',
  startFailed: 'start failed',
  startGivenUp: 'start given up',
  ready: 'ready',
  stopping: 'stopping',
  draining: 'draining',
  drained: 'drained',
  drainFailed: 'drain failed',
  closed: 'closed',
  closeFailed: 'close failed',
  secondSignal: 'second signal, exiting at once',
  failed: 'lifecycle failed',
  exited: 'exiting',
} as const
