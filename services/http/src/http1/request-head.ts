import type { IncomingHttpHeaders } from 'node:http'
import { badRequest, HttpFault } from './http-fault.ts'

/** Most bytes of a head: the request line and the header fields. As node:http by default. */
export const MAX_HEAD_BYTES = 16_384

/** The request line and the header fields of one request. */
export interface RequestHead {
  readonly method: string
  /** Target as the client wrote it, such as `/v2/models/m?x=1`. */
  readonly target: string
  /** True for HTTP/1.0. */
  readonly isHttp10: boolean
  /** Values by names in lower case, as node:http gives them. Repeated fields are joined, or the first one counts. */
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as the client wrote them. */
  readonly rawHeaders: readonly string[]
  /** Bytes of the body; undefined for a body in chunks. */
  readonly bodyBytes: number | undefined
  /** True if the client wants no further request on the connection. */
  readonly isLast: boolean
}

const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]+) ([\x21-\x7e]+) HTTP\/1\.([01])$/
const TARGET = /^(?:\/|\*$|[A-Za-z]+:\/\/[\w.~!$&'()*+,;=:%[\]@-]+(?:[/?]|$))/
const AUTHORITY = /^[\w.~!$&'()*+,;=:%[\]-]+$/
const FIELD_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
const NOT_OF_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const LENGTH = /^\d{1,15}$/

/** Fields that say where a request ends. */
const FRAMING_FIELDS: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])

/** Fields of which node:http takes the first one only. Others are joined by a comma. */
const SINGLE_FIELDS: ReadonlySet<string> = new Set([
  'age',
  'authorization',
  'content-length',
  'content-type',
  'etag',
  'expires',
  'from',
  'host',
  'if-modified-since',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'retry-after',
  'server',
  'user-agent',
])

/**
 * Parses a head strictly: where two parsers might end a request at different bytes, it is refused.
 *
 * @param text - the head as latin1, without the empty line at its end.
 * @throws HttpFault 400
 * @see RFC 9112, 3, 5 and 6
 */
export function parseHead(text: string): RequestHead {
  const [line = '', ...fields] = text.split('\r\n')
  const parts = REQUEST_LINE.exec(line)
  if (parts === null) throw badRequest('the request line is not METHOD TARGET HTTP/1.1')
  const [, method = '', target = '', minor] = parts
  if (!(method === 'CONNECT' ? AUTHORITY : TARGET).test(target)) {
    throw badRequest('the target of the request is neither a path nor an address')
  }
  const isHttp10 = minor === '0'
  const headers: IncomingHttpHeaders = {}
  const rawHeaders: string[] = []
  for (const field of fields) addField(field, headers, rawHeaders)
  const bodyBytes = framingOf(headers, rawHeaders, isHttp10)
  // There is no telling whether HTTP follows a CONNECT.
  const isLast = method === 'CONNECT' || isLastRequest(headers.connection, isHttp10)
  return { method, target, isHttp10, headers, rawHeaders, bodyBytes, isLast }
}

/** Checks a header field, or a trailer field. @throws HttpFault 400 */
export function splitField(field: string): { readonly name: string; readonly value: string } {
  const colon = field.indexOf(':')
  const name = field.slice(0, Math.max(colon, 0))
  if (!FIELD_NAME.test(name)) throw badRequest('a header field is not NAME: VALUE')
  const value = trimBlanks(field, colon + 1)
  if (NOT_OF_A_VALUE.test(value)) throw badRequest(`the header ${name} has a control character`)
  return { name, value }
}

function addField(field: string, headers: IncomingHttpHeaders, rawHeaders: string[]): void {
  const { name, value } = splitField(field)
  rawHeaders.push(name, value)
  const key = name.toLowerCase()
  // A tab hides the length from some parsers.
  if (FRAMING_FIELDS.has(key) && field.includes('\t')) {
    throw badRequest(`the header ${name} has a tab`)
  }
  const had = headers[key]
  if (Array.isArray(had)) had.push(value)
  // A name such as `constructor` is one of every object's.
  else if (typeof had !== 'string') headers[key] = key === 'set-cookie' ? [value] : value
  else if (!SINGLE_FIELDS.has(key)) headers[key] = `${had}${key === 'cookie' ? '; ' : ', '}${value}`
}

/** Takes the blanks away that stand around a value. */
function trimBlanks(text: string, from: number): string {
  let begin = from
  let end = text.length
  while (begin < end && isBlank(text.charCodeAt(begin))) begin += 1
  while (end > begin && isBlank(text.charCodeAt(end - 1))) end -= 1
  return text.slice(begin, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** Finds the bytes of the body; undefined for chunks. A length may stand there once, and not beside chunks. */
function framingOf(
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  isHttp10: boolean,
): number | undefined {
  const { 'content-length': length, 'transfer-encoding': coding } = headers
  if (coding !== undefined) {
    if (length !== undefined) throw badRequest('it has Content-Length and Transfer-Encoding')
    if (isHttp10) throw badRequest('HTTP/1.0 has no Transfer-Encoding')
    if (coding.toLowerCase() === 'chunked') return undefined
    throw badRequest(`Transfer-Encoding: got '${coding}', want 'chunked'`)
  }
  if (length === undefined) return 0
  if (countOf(rawHeaders, 'content-length') > 1) throw badRequest('it has several Content-Length')
  if (LENGTH.test(length)) return Number(length)
  throw badRequest(`Content-Length: got '${length}', want a number of bytes`)
}

/** Counts the fields of a name. @param name - in lower case. */
export function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i]
    if (raw?.length === name.length && raw.toLowerCase() === name) count += 1
  }
  return count
}

function isLastRequest(connection: string | undefined, isHttp10: boolean): boolean {
  if (connection === undefined) return isHttp10
  const options = connection.toLowerCase().split(',')
  if (options.some((option) => option.trim() === 'close')) return true
  return isHttp10 && !options.some((option) => option.trim() === 'keep-alive')
}

/** Makes the fault of a head that is too long. */
export function headTooLong(): HttpFault {
  return new HttpFault(431, `the headers of the request have more than ${MAX_HEAD_BYTES} bytes`)
}
