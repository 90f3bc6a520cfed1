import type { TensorPart } from '@tutti/protocol'

/** Most bytes that ride in one message: of each tensor, and of all of them. */
export interface InlineLimits {
  readonly each: number
  readonly total: number
}

/**
 * Decides for each tensor whether it rides inline or becomes a transfer, and whether that goes at once.
 *
 * @param unasked - bytes of transfers that the receiver takes before it grants credit.
 * @param openTransfer - called for each tensor that does not ride inline, returns the transfer's number.
 */
export function splitTensors(
  tensors: readonly Uint8Array[],
  limits: InlineLimits,
  unasked: number,
  openTransfer: (bytes: Uint8Array, isUnasked: boolean) => number,
): TensorPart[] {
  let left = limits.total
  let unaskedLeft = unasked
  return tensors.map((bytes) => {
    const size = bytes.byteLength
    if (size <= limits.each && size <= left) {
      left -= size
      return { kind: 'inline', bytes }
    }
    const isUnasked = size <= unaskedLeft
    if (isUnasked) unaskedLeft -= size
    const transfer = openTransfer(bytes, isUnasked)
    return { kind: 'transfer', transfer, size, ...(isUnasked && { isUnasked }) }
  })
}

/** Counts the bytes of the parts that come unasked. */
export function unaskedBytes(parts: readonly TensorPart[]): number {
  let bytes = 0
  for (const part of parts) if (part.kind === 'transfer' && part.isUnasked) bytes += part.size
  return bytes
}

/** Counts the bytes of the parts that come as transfers. */
export function transferBytes(parts: readonly TensorPart[]): number {
  let bytes = 0
  for (const part of parts) if (part.kind === 'transfer') bytes += part.size
  return bytes
}

/** Gives the bytes of a part that came with its message; undefined if they come as a transfer. */
export function arrivedBytes(part: TensorPart): Uint8Array | undefined {
  if (part.kind === 'inline') return part.bytes
  return part.size === 0 ? new Uint8Array() : undefined
}
