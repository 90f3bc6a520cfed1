import type { Socket } from 'node:net'

const ANSWERS: Readonly<Record<string, { readonly status: string; readonly error: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    error: 'request headers are too large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: '408 Request Timeout',
    error: 'request headers did not arrive in time',
  },
}
const MALFORMED = { status: '400 Bad Request', error: 'malformed HTTP request' }

/** Answers what is no HTTP request, as far as anybody is there to read it, and closes the connection. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const answer = ANSWERS[error.code ?? ''] ?? MALFORMED
  const body = JSON.stringify({ error: answer.error })
  socket.end(
    [
      `HTTP/1.1 ${answer.status}`,
      'content-type: application/json',
      'connection: close',
      `content-length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n'),
    () => socket.destroy(),
  )
}
