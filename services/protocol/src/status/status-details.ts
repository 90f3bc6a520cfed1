import { sizeOfField, sizeOfInt64, sizeOfText, WireReader, WireWriter } from '@tutti/tensor'

const ERROR_INFO_URL = 'type.googleapis.com/google.rpc.ErrorInfo'

/** A google.rpc.ErrorInfo. */
export interface ErrorInfo {
  readonly reason: string
  readonly domain: string
  readonly metadata: Readonly<Record<string, string>>
}

/** A google.rpc.Status with at most one detail that we know. */
export interface StatusDetails {
  readonly code: number
  readonly message: string
  readonly info?: ErrorInfo
}

function encodeErrorInfo(info: ErrorInfo): Buffer {
  const entries = Object.entries(info.metadata).map(([key, value]) => {
    const entry = new WireWriter(sizeOfText(key) + sizeOfText(value))
    entry.text(10, key)
    entry.text(18, value)
    return entry.bytes
  })
  let size = sizeOfText(info.reason) + sizeOfText(info.domain)
  for (const entry of entries) size += sizeOfField(entry.byteLength)
  const writer = new WireWriter(size)
  writer.text(10, info.reason)
  writer.text(18, info.domain)
  for (const entry of entries) writer.field(26, entry)
  return writer.bytes
}

/** Encodes for `grpc-status-details-bin`. */
export function encodeStatusDetails(status: StatusDetails & { readonly info: ErrorInfo }): Buffer {
  const info = encodeErrorInfo(status.info)
  const anySize = sizeOfText(ERROR_INFO_URL) + sizeOfField(info.byteLength)
  const writer = new WireWriter(
    1 + sizeOfInt64(status.code) + sizeOfText(status.message) + sizeOfField(anySize),
  )
  writer.byte(8)
  writer.varint(status.code)
  writer.text(18, status.message)
  writer.byte(26)
  writer.varint(anySize)
  writer.text(10, ERROR_INFO_URL)
  writer.field(18, info)
  return writer.bytes
}

/** Reads a message of string fields and hands over everything else. */
function decodeErrorInfo(bytes: Uint8Array): ErrorInfo {
  const reader = new WireReader(bytes)
  let reason = ''
  let domain = ''
  const metadata = new Map<string, string>()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) reason = reader.text()
    else if (tag === 18) domain = reader.text()
    else if (tag === 26) readEntry(reader, metadata)
    else reader.skip(tag)
  }
  return { reason, domain, metadata: Object.fromEntries(metadata) }
}

function readEntry(reader: WireReader, metadata: Map<string, string>): void {
  const [key, value] = readTwoFields(reader)
  metadata.set(key.toString('utf8'), value.toString('utf8'))
}

/** Fields 1 and 2 of a nested message, both length-delimited. */
function readTwoFields(reader: WireReader): readonly [Buffer, Buffer] {
  let first = Buffer.alloc(0)
  let second = Buffer.alloc(0)
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) first = Buffer.from(reader.view())
    else if (tag === 18) second = Buffer.from(reader.view())
    else reader.skip(tag)
  }
  reader.leave(outer)
  return [first, second]
}

/** @throws ServeError MALFORMED_MESSAGE if the bytes are no google.rpc.Status. */
export function decodeStatusDetails(bytes: Uint8Array): StatusDetails {
  const reader = new WireReader(bytes)
  let code = 0
  let message = ''
  let info: ErrorInfo | undefined
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 8) code = Number(reader.safeInt64())
    else if (tag === 18) message = reader.text()
    else if (tag === 26) {
      const [url, value] = readTwoFields(reader)
      if (url.toString('utf8') === ERROR_INFO_URL) info ??= decodeErrorInfo(value)
    } else reader.skip(tag)
  }
  return info === undefined ? { code, message } : { code, message, info }
}
