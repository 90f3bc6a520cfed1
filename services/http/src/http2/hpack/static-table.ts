/** A header field. Names and values are strings of bytes (latin1). */
export interface Field {
  readonly name: string
  readonly value: string
}

/** Bytes that a field counts beside its name and its value, in tables and in lists. @see RFC 7541, 4.1 and RFC 9113, 6.5.2 */
const FIELD_BYTES = 32

export function sizeOf({ name, value }: Field): number {
  return FIELD_BYTES + name.length + value.length
}

/** @see RFC 7541, appendix A */
const TABLE = `:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`

/** Static table of HPACK. The first entry has the index 1 in HPACK. */
export const STATIC_TABLE: readonly Field[] = TABLE.split('\n').map((line) => {
  const [name = '', ...value] = line.split(' ')
  return { name, value: value.join(' ') }
})
