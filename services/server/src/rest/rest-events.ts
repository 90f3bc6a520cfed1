/** The messages of the REST server's log lines. */
export const REST_EVENTS = {
  connectionRefused: 'connection refused, too many are open',
  requestFailed: 'http request failed',
  listenerFailed: 'listener failed',
} as const
