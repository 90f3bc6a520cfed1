import { ServeError } from '@tutti/errors'

export const WIRE_VARINT = 0
export const WIRE_FIXED64 = 1
export const WIRE_BYTES = 2
const WIRE_GROUP = 3
const WIRE_GROUP_END = 4
export const WIRE_FIXED32 = 5

const GROUP_DEPTH = 100

/** Makes the MALFORMED_MESSAGE error for bytes that are no valid protobuf message. */
export function malformed(what: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `malformed message: ${what}`)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes the string between two byte positions. @throws ServeError MALFORMED_MESSAGE if it is not UTF-8, as proto3 demands. */
export function decodeText(bytes: Uint8Array, at: number, end: number): string {
  try {
    return utf8.decode(bytes.subarray(at, end))
  } catch {
    throw malformed(`a string at byte ${at} is not UTF-8`)
  }
}

/** Makes the error for a message with too many fields. Every field takes time, even if it takes few bytes. */
export function tooManyFields(): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    'message has too many fields or typed elements; send tensors as raw contents',
  )
}

/** Most bytes of a name, a version, an id or a key. A longer one would also fill errors and logs. */
export const NAME_BYTES = 4096

/** Makes the error for a name, a version, an id or a key that is too long. */
export function tooLong(sizeBytes: number, maxBytes: number): ServeError {
  const text = `a name, version, id or key has ${sizeBytes} bytes, want at most ${maxBytes}`
  return new ServeError('MESSAGE_TOO_LARGE', text)
}

/** The part of a WireReader that skipping needs. */
interface Reader {
  tag(): number
  varint(): void
  length(): number
  take(length: number): number
}

/** Skips the field that `tag` began, by its wire type: unknown fields are no error in protobuf. @throws ServeError MALFORMED_MESSAGE */
export function skipField(reader: Reader, tag: number, depth = 0): void {
  switch (tag & 7) {
    case WIRE_VARINT:
      return reader.varint()
    case WIRE_FIXED64:
      return void reader.take(8)
    case WIRE_BYTES:
      return void reader.take(reader.length())
    case WIRE_GROUP:
      return skipGroup(reader, tag >>> 3, depth)
    case WIRE_FIXED32:
      return void reader.take(4)
    default:
      throw malformed(`wire type ${tag & 7} of field ${tag >>> 3}`)
  }
}

function skipGroup(reader: Reader, field: number, depth: number): void {
  if (depth >= GROUP_DEPTH) throw malformed(`groups are nested deeper than ${GROUP_DEPTH}`)
  for (;;) {
    const tag = reader.tag()
    if ((tag & 7) !== WIRE_GROUP_END) {
      skipField(reader, tag, depth + 1)
      continue
    }
    if (tag >>> 3 !== field) throw malformed(`group ${field} is ended as ${tag >>> 3}`)
    return
  }
}
