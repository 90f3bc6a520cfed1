import { WireWriter } from '@tutti/formats'
import { MAX_MESSAGE_BYTES, tooLargeMessage } from '../message-bounds.ts'
import type { InferResponse } from './infer-message.ts'
import { encodeHead, RAW_OUTPUTS, USUAL_HEAD_BYTES } from './server-codec.ts'

/** Bytes from which an output is a piece of its own. Smaller outputs are copied, because a further piece costs more. */
export const LEAST_PIECE_BYTES = 65_536

/**
 * Encodes a ModelInferResponse as a frame of gRPC, in pieces that follow each other. Outputs of LEAST_PIECE_BYTES and more are
 * views of their tensors; the others are copied.
 *
 * @throws ServeError MESSAGE_TOO_LARGE above 2^31 - 1 bytes.
 */
export function encodeInferResponsePieces(response: InferResponse): readonly Uint8Array[] {
  const { head, sizeBytes } = encodeHead(response, response.outputs)
  if (sizeBytes > MAX_MESSAGE_BYTES) throw tooLargeMessage(sizeBytes)
  const pieces: Uint8Array[] = []
  let writer = new WireWriter(USUAL_HEAD_BYTES)
  writer.byte(0)
  for (const shift of [24, 16, 8, 0]) writer.byte(sizeBytes >>> shift)
  writer.raw(head)
  for (const { data } of response.outputs) {
    if (data.byteLength < LEAST_PIECE_BYTES) writer.field(RAW_OUTPUTS, data)
    else {
      writer.byte(RAW_OUTPUTS)
      writer.varint(data.byteLength)
      pieces.push(writer.bytes, data)
      writer = new WireWriter(USUAL_HEAD_BYTES)
    }
  }
  if (writer.bytes.byteLength > 0) pieces.push(writer.bytes)
  return pieces
}
