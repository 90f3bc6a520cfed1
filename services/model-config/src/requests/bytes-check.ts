import { elementCount, formatElementCount, type Shape, type TensorValue } from '@tutti/tensor'

/** Why the bytes of a BYTES tensor are refused; Triton's text without its prefix. */
export interface BytesFault {
  readonly text: string
  /** True if Triton puts the request id before the text. False for the one fault that Triton's backends find. */
  readonly isRequestFault: boolean
}

const PREFIX_BYTES = 4
/** Most elements in the BYTES inputs of one request. Each element is checked by itself: this many take about 7 ms. */
export const MAX_TEXTS = 2 ** 21

/**
 * Counts the elements of a BYTES tensor that a check may have to read, before the bytes are checked: those of its shape, but at
 * most as many as its bytes can hold.
 */
export function countTexts({ data, shape }: TensorValue): number {
  const most = Math.floor(data.byteLength / PREFIX_BYTES)
  const count = elementCount(shape)
  return count < most ? Math.max(0, count) : most
}

/**
 * Checks that a BYTES tensor has exactly the number of elements of its shape, and that each is whole. Does not copy.
 *
 * @param input - name of the input, for the text.
 * @param model - name of the model, for the text.
 * @returns undefined if there is no fault.
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

/**
 * Walks up to `count` elements. It returns how many there are, and where the last one begins and should end, perhaps beyond the
 * data.
 */
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
