import type { Field } from './hpack/static-table.ts'

/** Headers of a request, by name in lower case, with the pseudo-headers. Each has one value. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

const PSEUDO = new Set([':method', ':scheme', ':path', ':authority'])
/** Fields of a connection of HTTP/1. @see RFC 9113, 8.2.2 */
const OF_HTTP1 = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])
/** Fields of which the first one counts if they come twice; the values of any other field become a list. */
const ONCE = new Set([
  'authorization',
  'content-encoding',
  'content-length',
  'content-type',
  'from',
  'max-forwards',
  'proxy-authorization',
  'range',
  'referer',
  'user-agent',
])
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** No end of a line and no NUL. White space at its ends, which gRPC clients send too, is left to the reader of the field. */
// oxlint-disable-next-line no-control-regex -- they are what must not be in a value
const NO_VALUE = /[\x00\r\n]/
const LENGTH = /^\d{1,15}$/

/** Makes the headers of a request from its fields; undefined if no request may have such fields. @see RFC 9113, 8.2 and 8.3 */
export function toRequestHeaders(fields: readonly Field[]): RequestHeaders | undefined {
  const headers: Record<string, string> = Object.create(null)
  let isBegun = false
  for (const { name, value } of fields) {
    if (NO_VALUE.test(value)) return undefined
    if (name.startsWith(':')) {
      if (isBegun || !PSEUDO.has(name) || name in headers) return undefined
      headers[name] = value
      continue
    }
    isBegun = true
    // Two readers of the request would not agree on it.
    if (!isRegular(name, value) || (name === 'host' && name in headers)) return undefined
    add(headers, name, value)
  }
  return isRequest(headers) ? headers : undefined
}

/** Checks whether fields may be the trailers of a request. */
export function areTrailers(fields: readonly Field[]): boolean {
  return fields.every(({ name, value }) => isRegular(name, value) && !NO_VALUE.test(value))
}

/** Reads the length of the body from `content-length`, in bytes; undefined without that field. */
export function contentLength(headers: RequestHeaders): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

function isRegular(name: string, value: string): boolean {
  return NAME.test(name) && !OF_HTTP1.has(name) && (name !== 'te' || value === 'trailers')
}

function add(headers: Record<string, string>, name: string, value: string): void {
  const before = headers[name]
  if (before === undefined) headers[name] = value
  else if (!ONCE.has(name)) headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
}

function isRequest(headers: RequestHeaders): boolean {
  const { ':method': method, ':scheme': scheme, ':path': path, ':authority': authority } = headers
  const length = headers['content-length']
  if (length !== undefined && !LENGTH.test(length)) return false
  if (method === undefined) return false
  if (method === 'CONNECT')
    return authority !== undefined && path === undefined && scheme === undefined
  return scheme !== undefined && path !== undefined && path !== ''
}
