import { ServeError } from '@tutti/errors'
import { countOf, type HttpFault, type RequestHead } from '@tutti/http'
import { errorReply, methodNotAllowed, type RestReply } from './answers/rest-reply.ts'

/** Makes the answer to a request that cannot be read: like every other error, with a text and a reason. */
export function refuseUnread(fault: HttpFault): RestReply {
  const { status, message } = fault
  const text = status === 400 ? `no HTTP request: ${message}` : message
  return { ...errorReply(new ServeError(REASONS[status], text, { cause: fault })), status }
}

const REASONS = {
  400: 'MALFORMED_MESSAGE',
  408: 'DEADLINE_EXCEEDED',
  431: 'MESSAGE_TOO_LARGE',
} as const

/** Makes the answer to a request that HTTP/1.1 allows and the server does not; undefined for others. */
export function refuseHead(head: RequestHead): RestReply | undefined {
  if (head.method === 'CONNECT') return methodNotAllowed([])
  const { expect } = head.headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    const text = `header Expect: got '${expect}', want '100-continue'`
    const error = new ServeError('UNSUPPORTED', text, { details: { field: 'expect' } })
    return { ...errorReply(error), status: 417 }
  }
  const hosts = countOf(head.rawHeaders, 'host')
  // HTTP/1.0 needs none. If there are several, a proxy and the server might read different ones.
  if (hosts === 1 || (hosts === 0 && head.isHttp10)) return undefined
  const text = `got ${hosts} headers Host, want one`
  return errorReply(new ServeError('MALFORMED_MESSAGE', text, { details: { field: 'host' } }))
}
