import { WireReader } from '@tutti/formats'
import { MAX_FIELDS, MESSAGE_BOUNDS, tooManyEntries } from '../message-bounds.ts'
import type { InferRequestMessage } from './infer-message.ts'
import { MessageDecoder, RAW_INPUTS } from './server-codec.ts'

/** Entry of raw_input_contents whose bytes are not in the message. The message holds only its tag and its length. */
export interface ApartTensor {
  /** Position of the entry's tag in the message, in bytes. */
  readonly at: number
  readonly bytes: Uint8Array
}

/**
 * Decodes a ModelInferRequest of which some raw contents are apart, otherwise as `decodeInferRequest` does.
 *
 * @param apart - in the order of the message; viewed, not copied.
 */
export function decodeApartRequest(
  bytes: Uint8Array,
  apart: readonly ApartTensor[],
): InferRequestMessage {
  const reader = new WireReader(bytes, MAX_FIELDS)
  const decoder = new MessageDecoder(RAW_INPUTS)
  const { rawInputContents: raw } = decoder
  let read = 0
  while (reader.hasMore()) {
    const next = apart[read]
    if (next?.at === reader.position) {
      if (raw.length >= MESSAGE_BOUNDS.rawContents) throw tooManyEntries('rawContents')
      reader.tag()
      reader.length()
      raw.push(next.bytes)
      read += 1
    } else decoder.read(reader)
  }
  decoder.count(reader)
  return decoder
}
