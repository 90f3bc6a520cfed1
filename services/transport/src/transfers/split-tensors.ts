import type { TensorPart } from '@tutti/protocol'

/** Bytes that ride in one message: of each tensor, and of all of them. */
export interface InlineLimits {
  readonly each: number
  readonly total: number
}

/**
 * Decides for each tensor whether it rides inline or becomes a transfer.
 *
 * @param openTransfer - called for each tensor that does not ride inline, returns the transfer's number.
 */
export function splitTensors(
  tensors: readonly Uint8Array[],
  limits: InlineLimits,
  openTransfer: (bytes: Uint8Array) => number,
): TensorPart[] {
  let left = limits.total
  return tensors.map((bytes) => {
    const size = bytes.byteLength
    if (size > limits.each || size > left) {
      return { kind: 'transfer', transfer: openTransfer(bytes), size }
    }
    left -= size
    return { kind: 'inline', bytes }
  })
}

/** Bytes of the parts that come as transfers. */
export function transferBytes(parts: readonly TensorPart[]): number {
  let bytes = 0
  for (const part of parts) if (part.kind === 'transfer') bytes += part.size
  return bytes
}

/** Bytes of a part that are here with its message; undefined for those that come as a transfer. */
export function arrivedBytes(part: TensorPart): Uint8Array | undefined {
  if (part.kind === 'inline') return part.bytes
  return part.size === 0 ? new Uint8Array() : undefined
}
