import { elementCount, formatElementCount, type Shape } from '@tutti/tensor'

/** Why the bytes of a BYTES tensor are refused; Triton's text without its prefix. */
export interface BytesFault {
  readonly text: string
  /** False for the fault that Triton's backends find, whose text has no request id. */
  readonly isRequestFault: boolean
}

const PREFIX_BYTES = 4

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
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (isWhole(view, count)) return undefined
  let found = 0
  let offset = 0
  let missing: string | undefined
  while (offset < data.byteLength) {
    const left = data.byteLength - offset
    if (left < PREFIX_BYTES) {
      return {
        text: `incomplete string length indicator for inference input '${input}' for model '${model}', expecting 4 bytes but only ${left} bytes available. Please make sure the string length indicator is in one buffer.`,
        isRequestFault: true,
      }
    }
    const length = view.getUint32(offset, true)
    const available = left - PREFIX_BYTES
    if (length > available) {
      missing = `incomplete string data for inference input '${input}', expecting string of length ${length} but only ${available} bytes available`
    }
    offset += PREFIX_BYTES + length
    found += 1
    if (found > count) {
      return {
        text: `unexpected number of string elements ${found} for inference input '${input}' for model '${model}', expecting ${count}`,
        isRequestFault: true,
      }
    }
  }
  if (found < count) {
    return {
      text: `expected ${formatElementCount(shape)} string elements for inference input '${input}' for model '${model}', got ${found}`,
      isRequestFault: true,
    }
  }
  return missing === undefined ? undefined : { text: missing, isRequestFault: false }
}

/** Whether there are exactly so many whole elements: what is right, and may have very many of them, is read by a loop of its own. */
function isWhole(view: DataView, count: number): boolean {
  const last = view.byteLength - PREFIX_BYTES
  let left = count
  let offset = 0
  while (offset <= last && left > 0) {
    offset += PREFIX_BYTES + view.getUint32(offset, true)
    left -= 1
  }
  return left === 0 && offset === view.byteLength
}
