import type { NamedTensor, StepRequest } from '@tutti/tensor'
import { type Arena, type ArenaPart, aligned, INLINE_BYTES } from './arena.ts'
import { FrameWriter, IN_ARENA, IN_PAYLOAD, OP, type TensorPlace } from './frames.ts'
import { contextJson } from './request-context.ts'

/** Tensors packed for a frame. */
export interface PackedTensors {
  /** Part of the arena that holds the tensors; undefined if they travel in the frame. */
  readonly region: ArenaPart | undefined
  /** Places of the tensors, in the lists that were given. */
  readonly places: readonly (readonly TensorPlace[])[]
  readonly payload: readonly Uint8Array[]
  readonly payloadBytes: number
  /** Resolves when large tensors are copied; undefined if all is. */
  readonly copied: Promise<unknown> | undefined
}

/**
 * Copies tensors into the arena, large ones off the event loop. Small ones travel in the frame, and all do if the arena is full.
 *
 * @param borrow - finds the offset at which the process already sees a tensor of a list; undefined if it does not.
 */
export function packTensors(
  lists: readonly (readonly NamedTensor[])[],
  arena: Arena | undefined,
  borrow: (list: number, data: Uint8Array) => number | undefined = () => undefined,
): PackedTensors {
  let bytes = 0
  let packedBytes = 0
  const borrowed = lists.map((list, i) =>
    list.map(({ data }) => {
      const offset = borrow(i, data)
      if (offset !== undefined) return offset
      bytes += data.byteLength
      packedBytes += aligned(data.byteLength)
      return undefined
    }),
  )
  const region = bytes > INLINE_BYTES ? arena?.allocate(packedBytes) : undefined
  const payload: Uint8Array[] = []
  const copies: Promise<void>[] = []
  let at = 0
  const place = (tensor: NamedTensor, lent: number | undefined): TensorPlace => {
    const { name, datatype, shape, data } = tensor
    const size = data.byteLength
    if (lent !== undefined) return { name, datatype, shape, place: IN_ARENA, offset: lent, size }
    if (region === undefined) {
      if (size > 0) payload.push(data)
      return { name, datatype, shape, place: IN_PAYLOAD, offset: 0, size }
    }
    const offset = region.offset + at
    const copying = arena?.write(offset, data)
    if (copying !== undefined) copies.push(copying)
    at += aligned(size)
    return { name, datatype, shape, place: IN_ARENA, offset, size }
  }
  const places = lists.map((list, i) => list.map((tensor, j) => place(tensor, borrowed[i]?.[j])))
  const copied = copies.length === 0 ? undefined : Promise.all(copies)
  return { region, places, payload, payloadBytes: region === undefined ? bytes : 0, copied }
}

/** Makes the frame of an execution: header, meta and payload, in order. */
export function executeFrame(o: {
  readonly id: number
  readonly firstKey: number
  readonly requests: readonly StepRequest[]
  /** Inputs of the requests, packed for this execution alone. */
  readonly packed: PackedTensors
  readonly scratch: ArenaPart | undefined
}): readonly Uint8Array[] {
  const { packed, scratch } = o
  const { region, places } = packed
  const writer = new FrameWriter()
  writer.u32(o.requests.length, 0)
  writer.u64(region?.offset ?? 0, region?.size ?? 0, scratch?.offset ?? 0, scratch?.size ?? 0)
  o.requests.forEach((request, i) => {
    writer.request(o.firstKey + i, places[i] ?? [], contextJson(request))
  })
  return finishWith(packed, writer, OP.EXECUTE, o.id)
}

/**
 * Finishes a frame with the tensors that travel in it. Small ones go into one buffer, because each further buffer costs more than
 * the copy.
 */
export function finishWith(
  { payload, payloadBytes }: PackedTensors,
  writer: FrameWriter,
  op: number,
  id: number,
): readonly Uint8Array[] {
  if (payloadBytes > INLINE_BYTES) return [writer.finish(op, id, payloadBytes), ...payload]
  return [writer.payload(payload, payloadBytes).finish(op, id, 0)]
}
