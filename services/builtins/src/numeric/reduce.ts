import { z } from 'zod'
import { axisOption, MAX_RANK, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS, onFloats } from '../datatypes.ts'
import { refuseDims } from '../input-reader.ts'
import { keyOption } from '../key-option.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import { keptDims, reduceOptions } from './reduced-dims.ts'

const OPERATORS = {
  sum: 'ReduceSum',
  mean: 'ReduceMean',
  max: 'ReduceMax',
  min: 'ReduceMin',
} as const

/** Reduces dimensions to one element each. */
export const reduce = onnxBuiltin({
  name: 'reduce',
  summary: 'Computes the sum, the mean, the greatest or the least element along dimensions.',
  options: z.strictObject({
    op: keyOption(OPERATORS, 'Function of the elements'),
    axes: z
      .array(axisOption('Dimension'))
      .min(1)
      .max(MAX_RANK)
      .optional()
      .describe('Dimensions that are reduced; default: all'),
    keepDims: reduceOptions.keepDims,
  }),
  inputs: { input: 'FP16, FP32, FP64, INT32 or INT64, of any dims; a `mean` of floats' },
  outputs: { output: 'the datatype of `input`, its dims without `axes`; [1] if none is left' },
  signature: ({ op, axes, keepDims }, inputs) => {
    const datatypes = op === 'mean' ? FLOATS : ([...FLOATS, 'INT32', 'INT64'] as const)
    const input = inputs.take('input', { datatypes })
    const { datatype, dims } = input
    const reduced = axesOf(axes, dims.length)
    const output = keptDims(dims, reduced, keepDims)
    const isOfNone = reduced.some((axis) => dims[axis] === 0) && !output.includes(0)
    if (isOfNone && (op === 'max' || op === 'min')) refuseDims(input, `elements for the ${op}`)
    return [{ name: 'output', datatype, dims: output }]
  },
  // The mean is 0 / 0, as in NumPy.
  valueOfNothing: ({ op }) => (op === 'mean' ? Number.NaN : 0),
  build: ({ op, axes, keepDims }, graph) => {
    const { datatype, dims } = graph.port('input')
    const all = axesOf(axes, dims.length)
    const keepdims = keepDims || all.length === dims.length ? 1 : 0
    const compute = (value: string): string =>
      graph.op(OPERATORS[op], [value, graph.list(...all)], { keepdims })
    const input = graph.input('input')
    const isFloat = datatype.startsWith('FP')
    const value = isFloat ? onFloats(graph, input, datatype, compute) : onIntegers(graph, compute)
    const isOne = all.length === dims.length && !keepDims && dims.length > 1
    graph.output('output', isOne ? graph.op('Reshape', [value, graph.list(1)]) : value)
  },
  arithmetic: [
    {
      case: 'FP32, FP64',
      equals: '`x.sum(axes, keepdims=keepDims)` and so on',
      tolerance:
        '1e-5 of the sum of the absolute values, for `sum` and `mean`; none for `max` and `min`',
      except: 'NaN in `max` and `min`; `max` and `min` of no elements, which is an error',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 relative' },
    {
      case: 'INT32, INT64',
      equals: 'the same, in the datatype itself; a sum beyond its range wraps around',
      tolerance: 'none',
    },
  ],
})

/** The runtime's sum of INT32 ends at the greatest number; NumPy's goes on from the least, as that of INT64 does in both. */
function onIntegers(graph: OnnxGraph, compute: (value: Value) => Value): Value {
  const { datatype } = graph.port('input')
  const input = graph.input('input')
  return datatype === 'INT32'
    ? graph.cast(compute(graph.cast(input, 'INT64')), 'INT32')
    : compute(input)
}

/** @throws PortFault */
function axesOf(axes: readonly number[] | undefined, rank: number): number[] {
  if (axes === undefined) return Array.from({ length: rank }, (_, i) => i)
  return [...new Set(axes.map((axis, i) => toAxis(`axes[${i}]`, axis, rank)))]
}
