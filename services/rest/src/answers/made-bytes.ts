import type { GenerateRequest, RestInferRequest } from '@tutti/protocol'

/** Bytes of an object with its members, such as an input or a parameter. */
const ENTRY_BYTES = 256
/** Bytes of a character: one beyond Latin-1 makes all characters of a text take as much. */
const CHARACTER_BYTES = 2

/**
 * Estimates the bytes of the objects that parsing made of a body: names, parameters, and tensors of JSON, which may be several
 * times as large as their digits.
 *
 * @param body - not counted; inputs that view it are not counted either.
 */
export function madeBytes(request: RestInferRequest | GenerateRequest, body: Uint8Array): number {
  const { inputs, context } = request
  let bytes = 0
  for (const { name, data } of inputs) {
    // A tensor that the thread has parsed views a body that came back; a tensor made of JSON is alone in its memory.
    const isMade = data.byteLength === data.buffer.byteLength && data.buffer !== body.buffer
    bytes += ENTRY_BYTES + CHARACTER_BYTES * name.length + (isMade ? data.byteLength : 0)
  }
  for (const [key, { value }] of context.parameters) {
    const characters = key.length + (typeof value === 'string' ? value.length : 0)
    bytes += ENTRY_BYTES + CHARACTER_BYTES * characters
  }
  if (!('outputs' in request)) return bytes
  for (const { name } of request.outputs) bytes += ENTRY_BYTES + CHARACTER_BYTES * name.length
  return bytes
}
