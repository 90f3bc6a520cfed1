import { WireReader } from '@tutti/formats'
import { MAX_FIELDS, MESSAGE_BOUNDS, tooMany } from '../message-bounds.ts'
import type { InferRequestMessage } from './infer-message.ts'
import { MessageDecoder, RAW_INPUTS } from './server-codec.ts'

/** An entry of raw_input_contents that lies elsewhere: the bytes of its message have only its tag and its length. */
export interface ApartTensor {
  /** Where these begin. */
  readonly at: number
  readonly bytes: Uint8Array
}

/** Decodes a ModelInferRequest as `decodeInferRequest`, of which some raw contents are apart. @param apart - in their order; viewed. */
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
      if (raw.length >= MESSAGE_BOUNDS.rawContents) throw tooMany('rawContents')
      reader.tag()
      reader.length()
      raw.push(next.bytes)
      read += 1
    } else decoder.read(reader)
  }
  decoder.count(reader)
  return decoder
}
