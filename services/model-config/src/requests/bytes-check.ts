import { elementCount, formatElementCount, type Shape, type TensorValue } from '@tutti/tensor'

/** Why the bytes of a BYTES tensor are refused; Triton's text without its prefix. */
export interface BytesFault {
  readonly text: string
  /** False for the fault that Triton's backends find, whose text has no request id. */
  readonly isRequestFault: boolean
}

const PREFIX_BYTES = 4
/** Elements of the BYTES inputs of a request, which are looked at one by one: so many take some 7 ms. */
export const MAX_TEXTS = 2 ** 21

/** Most elements that a BYTES tensor can hold, whatever its shape says: a bound of the work of reading it, before its bytes are checked. */
export function countTexts({ data, shape }: TensorValue): number {
  const most = Math.floor(data.byteLength / PREFIX_BYTES)
  const count = elementCount(shape)
  return count < most ? Math.max(0, count) : most
}

/**
 * Walks the elements of a BYTES tensor without copying them.
 *
 * @param shape - of the tensor: its number of elements is wanted.
 * @returns undefined if there are exactly so many whole elements.
 */
export function findBytesFault(
  data: Uint8Array,
  shape: Shape,
  input: string,
  model: string,
): BytesFault | undefined {
  const count = elementCount(shape)
  const { found, begin, end } = walk(data, count)
  const { byteLength } = data
  if (found === count && end === byteLength) return undefined
  const left = byteLength - end
  if (left > 0 && left < PREFIX_BYTES) {
    return requestFault(
      `incomplete string length indicator for inference input '${input}' for model '${model}', expecting 4 bytes but only ${left} bytes available. Please make sure the string length indicator is in one buffer.`,
    )
  }
  if (left > 0) {
    return requestFault(
      `unexpected number of string elements ${found + 1} for inference input '${input}' for model '${model}', expecting ${count}`,
    )
  }
  if (found < count) {
    return requestFault(
      `expected ${formatElementCount(shape)} string elements for inference input '${input}' for model '${model}', got ${found}`,
    )
  }
  const available = byteLength - begin - PREFIX_BYTES
  const text = `incomplete string data for inference input '${input}', expecting string of length ${end - begin - PREFIX_BYTES} but only ${available} bytes available`
  return { text, isRequestFault: false }
}

function requestFault(text: string): BytesFault {
  return { text, isRequestFault: true }
}

/** Up to `count` elements: how many there are, and where the last one begins and should end, be it beyond the data. */
function walk(data: Uint8Array, count: number) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const last = data.byteLength - PREFIX_BYTES
  let found = 0
  let begin = 0
  let end = 0
  while (end <= last && found < count) {
    begin = end
    end += PREFIX_BYTES + view.getUint32(begin, true)
    found += 1
  }
  return { found, begin, end }
}
