import type { Datatype } from './tensor.ts'

export type ElementReader = (view: DataView, index: number) => number | bigint

/** Functions that read element `index` of raw tensor bytes, for each datatype but FP16, BF16 and BYTES. */
export const ELEMENT_READERS: Readonly<Partial<Record<Datatype, ElementReader>>> = {
  BOOL: (view, i) => view.getUint8(i),
  UINT8: (view, i) => view.getUint8(i),
  UINT16: (view, i) => view.getUint16(i * 2, true),
  UINT32: (view, i) => view.getUint32(i * 4, true),
  UINT64: (view, i) => view.getBigUint64(i * 8, true),
  INT8: (view, i) => view.getInt8(i),
  INT16: (view, i) => view.getInt16(i * 2, true),
  INT32: (view, i) => view.getInt32(i * 4, true),
  INT64: (view, i) => view.getBigInt64(i * 8, true),
  FP32: (view, i) => view.getFloat32(i * 4, true),
  FP64: (view, i) => view.getFloat64(i * 8, true),
}
