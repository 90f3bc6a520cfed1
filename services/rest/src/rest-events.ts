/** The messages of the REST server's log lines. */
export const REST_EVENTS = {
  connectionDropped: 'connection dropped at the bound',
  requestFailed: 'http request failed',
  listenerFailed: 'listener failed',
} as const
