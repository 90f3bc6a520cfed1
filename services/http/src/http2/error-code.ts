/** Error codes that say why a stream or a connection ends. @see RFC 9113, 7 */
export const ErrorCode = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  connectError: 10,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
  http11Required: 13,
} as const
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode]

/** Error for a client that broke the protocol or exceeded a bound. It ends the whole connection. */
export class ConnectionError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, text: string) {
    super(text)
    this.code = code
  }
}
