import { type IncomingMessage, maxHeaderSize, type Server, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { ServeError } from '@tutti/errors'
import { errorReply, methodNotAllowed, type RestReply } from './answers/rest-reply.ts'
import type { RequestRunner } from './request-runner.ts'

/** Answers faults that Node itself finds, before there is a route, like every other error: with a text and a reason. */
export function answerRefusals(server: Server, runner: RequestRunner): void {
  server.on('checkExpectation', (request, response) => {
    runner.reply(request, response, unknownExpectation(request.headers.expect))
  })
  // Its socket is no longer Node's to read, to close, and to hear errors of: one that is heard by none ends the process.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => socket.destroy())
    endWith(socket, methodNotAllowed([]))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const isLost = error.code === 'ECONNRESET' || !socket.writable
    if (isLost || runner.isAnswering(socket)) socket.destroy(error)
    else endWith(socket, toReply(error))
  })
}

/**
 * Checks that a request has one header `Host`: if it has several, a proxy and the server might read different ones.
 *
 * @returns the error; undefined for one header, or for none before HTTP/1.1.
 */
export function hostFault({ httpVersion, rawHeaders }: IncomingMessage): ServeError | undefined {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') count += 1
  }
  if (count === 1 || (count === 0 && httpVersion !== '1.1')) return undefined
  const text = `got ${count} headers Host, want one`
  return new ServeError('MALFORMED_MESSAGE', text, { details: { field: 'host' } })
}

function unknownExpectation(got: string | undefined): RestReply {
  const text = `header Expect: got '${got}', want '100-continue'`
  const error = new ServeError('UNSUPPORTED', text, { details: { field: 'expect' } })
  return { ...errorReply(error), status: 417 }
}

function toReply(cause: NodeJS.ErrnoException): RestReply {
  if (cause.code === 'HPE_HEADER_OVERFLOW') {
    const text = `the headers of the request have more than ${maxHeaderSize} bytes`
    return { ...errorReply(new ServeError('MESSAGE_TOO_LARGE', text, { cause })), status: 431 }
  }
  if (cause.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const text = 'the request did not come within its time'
    return { ...errorReply(new ServeError('DEADLINE_EXCEEDED', text, { cause })), status: 408 }
  }
  return errorReply(
    new ServeError('MALFORMED_MESSAGE', `no HTTP request: ${cause.message}`, { cause }),
  )
}

/** Writes an answer where there is no request to answer, and ends the connection. */
function endWith(socket: Duplex, { status, headers, parts }: RestReply): void {
  const body = Buffer.concat(parts)
  const all = { ...headers, 'content-length': body.byteLength, connection: 'close' }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${String(value)}\r\n`)
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`
  socket.end(Buffer.concat([Buffer.from(head), body]), () => socket.destroy())
}
