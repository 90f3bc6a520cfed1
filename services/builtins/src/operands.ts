import type { Datatype, Shape } from '@tutti/tensor'
import type { InputReader } from './input-reader.ts'
import { PortFault, refuseOption } from './input-reader.ts'
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

/** @throws PortFault for a number that an integer datatype does not have, or that is not exactly the one that was written. */
export function checkConstant(path: string, value: number, datatype: Datatype): void {
  if (datatype.startsWith('FP')) return
  if (!Number.isInteger(value))
    refuseOption(path, `${value}`, `a whole number: the input is ${datatype}`)
  const bits = Number(/\d+$/.exec(datatype)?.[0] ?? 1)
  const [least, most] = datatype.startsWith('INT')
    ? [-(2 ** (bits - 1)), 2 ** (bits - 1)]
    : [0, 2 ** bits]
  if (value >= least && value < most) {
    if (Number.isSafeInteger(value)) return
    // JSON and YAML have rounded it by now.
    refuseOption(path, `${value}`, `a whole number between -2^53 and 2^53, which are exact`)
  }
  refuseOption(path, `${value}`, `a number that ${datatype} has`)
}

/** Converts an input to a datatype, if it has another one. */
export function inputAs(graph: OnnxGraph, name: string, datatype: Datatype): Value {
  const value = graph.input(name)
  return graph.port(name).datatype === datatype ? value : graph.cast(value, datatype)
}

/** The values of both operands, in a datatype that the runtime computes in. */
export function operandValues(
  graph: OnnxGraph,
  value: number | undefined,
): readonly [Value, Value] {
  const { datatype } = graph.port('input')
  const wide = widened(datatype)
  const other = value === undefined ? inputAs(graph, 'other', wide) : graph.scalar(wide, value)
  return [inputAs(graph, 'input', wide), other]
}

/** The dims of two tensors that are broadcast against each other, as NumPy does. @throws PortFault */
export function broadcast(dims: Shape, other: Port): Shape {
  const rank = Math.max(dims.length, other.dims.length)
  const at = (shape: Shape, i: number): number => shape[i - rank + shape.length] ?? 1
  return Array.from({ length: rank }, (_, i) => {
    const [a, b] = [at(dims, i), at(other.dims, i)]
    if (a === b || b === 1) return a
    if (a === 1) return b
    if (a !== -1 && b !== -1) {
      const want = `dims that broadcast with [${dims.join(',')}]`
      throw new PortFault({
        path: `inputs.${other.name}`,
        got: `dims [${other.dims.join(',')}]`,
        want,
      })
    }
    return Math.max(a, b)
  })
}
