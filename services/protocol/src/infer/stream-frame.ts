import { WireWriter } from '@tutti/formats'
import type { StreamResponse } from './infer-message.ts'
import { encodeHead, toResponseFrame, USUAL_HEAD_BYTES } from './server-codec.ts'

const NO_RESPONSE = { head: new Uint8Array(0), sizeBytes: 0 }

/** Encodes a ModelStreamInferResponse as a frame of gRPC. Copies and errors are those of `encodeInferResponseFrame`. */
export function encodeStreamResponseFrame({ errorMessage, response }: StreamResponse): Buffer {
  const outer = new WireWriter(USUAL_HEAD_BYTES)
  outer.text(10, errorMessage)
  if (response === undefined) return toResponseFrame(outer.bytes, NO_RESPONSE, [])
  const inner = encodeHead(response, response.outputs)
  outer.byte(18)
  outer.varint(inner.sizeBytes)
  return toResponseFrame(outer.bytes, inner, response.outputs)
}
