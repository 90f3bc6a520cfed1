import { type Datatype, formatShape, type Shape } from '@tutti/tensor'
import { isFloat, rangeOf } from './datatypes.ts'
import type { InputReader } from './input-reader.ts'
import { refuseDims, refuseOption } from './input-reader.ts'
import type { OnnxGraph, Value } from './onnx/onnx-graph.ts'
import type { Port } from './ports.ts'

/** The datatypes in which numbers are computed; those that the runtime has no kernels for are widened. */
const WIDER: Readonly<Partial<Record<Datatype, Datatype>>> = {
  FP16: 'FP32',
  UINT8: 'INT32',
  INT8: 'INT32',
  UINT16: 'INT32',
  INT16: 'INT32',
  UINT32: 'INT64',
}

/** The datatype in which numbers of another are computed exactly; that one itself if the runtime has kernels for it. */
export function widened(datatype: Datatype, kernels: readonly Datatype[] = []): Datatype {
  return kernels.includes(datatype) ? datatype : (WIDER[datatype] ?? datatype)
}

/** Two operands that are broadcast against each other, of which the second may be an option. */
export interface Operands {
  readonly datatype: Datatype
  readonly dims: Shape
}

/**
 * Takes `input`, and either `other` or the option `value`.
 *
 * @throws PortFault if both or neither are there, or if they do not fit.
 */
export function takeOperands(
  inputs: InputReader,
  value: number | undefined,
  datatypes: readonly Datatype[],
): Operands {
  const { datatype, dims } = inputs.take('input', { datatypes })
  if (value === undefined) {
    const other = inputs.take('other', { datatypes: [datatype] })
    return { datatype, dims: broadcast(dims, other) }
  }
  if (inputs.has('other')) refuseOption('value', `${value} and the input other`, 'one of the two')
  checkConstant('value', value, datatype)
  return { datatype, dims }
}

/** @throws PortFault for a number that a datatype does not have, or an integer that is not exactly the one that was written. */
export function checkConstant(path: string, value: number | undefined, datatype: Datatype): void {
  if (value === undefined) return
  const isWhole = !isFloat(datatype)
  if (isWhole && !Number.isInteger(value))
    refuseOption(path, `${value}`, `a whole number for ${datatype}`)
  const [least, most] = rangeOf(datatype)
  if (value < least || value > most) refuseOption(path, `${value}`, `a number that ${datatype} has`)
  if (!isWhole || Number.isSafeInteger(value)) return
  // JSON and YAML have rounded it by now.
  refuseOption(path, `${value}`, `a whole number between -2^53 and 2^53, which are exact`)
}

/** The values of both operands, in a datatype that the runtime computes in. */
export function operandValues(
  graph: OnnxGraph,
  value: number | undefined,
  kernels?: readonly Datatype[],
): readonly [Value, Value] {
  const { datatype } = graph.port('input')
  const wide = widened(datatype, kernels)
  const other = value === undefined ? graph.input('other') : graph.scalar(datatype, value)
  return [graph.cast(graph.input('input'), wide), graph.cast(other, wide)]
}

/** Options of built-ins that add elements. */
interface PadOptions {
  readonly mode: 'constant' | 'edge' | 'reflect'
  readonly value?: number | undefined
}

/** @throws PortFault for a value that has no effect or that the datatype does not have. */
export function checkPad({ mode, value }: PadOptions, datatype: Datatype): void {
  if (value !== undefined && mode !== 'constant') {
    refuseOption('value', `${value} with mode ${mode}`, 'none, or the mode constant')
  }
  checkConstant('value', value, datatype)
}

/** Adds elements along axes. @param pads - INT64: how many before each axis, and then how many behind each. */
export function padValues(
  graph: OnnxGraph,
  values: Value,
  o: PadOptions & {
    readonly datatype: Datatype
    readonly pads: Value
    readonly axes: readonly number[]
  },
): Value {
  const type = widened(o.datatype, ['UINT8', 'INT8', 'UINT32'])
  const fill = o.mode === 'constant' ? graph.scalar(type, o.value ?? 0) : ''
  const inputs = [graph.cast(values, type), o.pads, fill, graph.list(...o.axes)]
  return graph.cast(graph.op('Pad', inputs, { mode: o.mode }), o.datatype)
}

/** The dims of two tensors that are broadcast against each other, as NumPy does. @throws PortFault */
export function broadcast(dims: Shape, other: Port): Shape {
  const rank = Math.max(dims.length, other.dims.length)
  const at = (shape: Shape, i: number): number => shape[i - rank + shape.length] ?? 1
  return Array.from({ length: rank }, (_, i) => {
    const [a, b] = [at(dims, i), at(other.dims, i)]
    if (a === b || b === 1) return a
    if (a === 1) return b
    if (a !== -1 && b !== -1) refuseDims(other, `dims that broadcast with ${formatShape(dims)}`)
    return Math.max(a, b)
  })
}
