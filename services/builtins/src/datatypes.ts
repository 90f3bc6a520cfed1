import { DATATYPES, type Datatype, isDatatype } from '@tutti/tensor'
import type { OnnxGraph, Value } from './onnx/onnx-graph.ts'

export const FLOATS = ['FP16', 'FP32', 'FP64'] as const satisfies readonly Datatype[]
export const INTEGERS = [
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
] as const satisfies readonly Datatype[]
export const NUMBERS = [...FLOATS, ...INTEGERS] as const
/** Every datatype but BF16, for which the runtime has few kernels on the CPU. */
export const MOST: readonly Datatype[] = Object.keys(DATATYPES)
  .filter(isDatatype)
  .filter((datatype) => datatype !== 'BF16')

export function isFloat(datatype: Datatype): boolean {
  return FLOATS.some((one) => one === datatype)
}

const GREATEST: Readonly<Record<(typeof FLOATS)[number], number>> = {
  FP16: 65_504,
  FP32: 2 ** 128 - 2 ** 104,
  FP64: Number.MAX_VALUE,
}

/** Returns the least and the greatest number of a datatype of NUMBERS, those of 64 bits rounded. */
export function rangeOf(datatype: Datatype): readonly [least: number, greatest: number] {
  const float = FLOATS.find((one) => one === datatype)
  if (float !== undefined) return [-GREATEST[float], GREATEST[float]]
  const bits = Number(/\d+$/.exec(datatype)?.[0])
  return datatype.startsWith('INT') ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1]
}

/**
 * Computes on a value of a floating-point datatype. FP16 is computed as FP32, because the runtime has no kernels for it on the CPU, and
 * rounded in the end.
 */
export function onFloats(
  graph: OnnxGraph,
  value: Value,
  datatype: Datatype,
  compute: (value: Value, datatype: 'FP32' | 'FP64') => Value,
): Value {
  if (datatype === 'FP64') return compute(value, 'FP64')
  if (datatype === 'FP32') return compute(value, 'FP32')
  return graph.cast(compute(graph.cast(value, 'FP32'), 'FP32'), datatype)
}
