import { encodeElements, repeatBytes, type TensorValue } from '@tutti/tensor'
import type { Constant } from '../constant.ts'

/** Collects the values that stand in a graph, and gives them their indexes. */
export class ConstantTable {
  readonly all: TensorValue[] = []

  /** @returns the index of the value. */
  add({ datatype, shape, value }: Constant): number {
    return this.all.push({ datatype, shape, data: encodeElements(datatype, value) }) - 1
  }
}

/** Returns the reference by which a run knows the constant with this index. References of other tensors are positive. */
export function constantRef(index: number): number {
  return -1 - index
}

/** Returns the index of the constant that a run knows by a reference; undefined for another tensor's. */
export function constantOf(ref: number): number | undefined {
  return ref < 0 ? -1 - ref : undefined
}

/**
 * Repeats a constant for each row of a batch.
 *
 * @param shape - that which the reader gets: of the constant, or with a leading dimension of rows.
 * @returns the constant's own bytes where there is one row.
 */
export function constantData(
  { shape: own, data }: TensorValue,
  shape: readonly number[],
): Uint8Array {
  const rows = shape.length === own.length ? 1 : (shape[0] ?? 1)
  return repeatBytes(data, rows)
}
