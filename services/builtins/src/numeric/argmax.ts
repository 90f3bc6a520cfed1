import { z } from 'zod'
import { axisOption, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { refuseDims } from '../input-reader.ts'
import { keptDims, reduceOptions } from './reduced-dims.ts'

const COMPARABLE = ['FP16', 'FP32', 'FP64', 'UINT8', 'INT8', 'INT32', 'INT64'] as const

/** Finds the greatest element. */
export const argmax = onnxBuiltin({
  name: 'argmax',
  summary: 'Finds the place of the greatest element along an axis.',
  options: z.strictObject({
    axis: axisOption('Dimension along which it is searched').default(-1),
    keepDims: reduceOptions.keepDims,
  }),
  inputs: { input: 'FP16, FP32, FP64, UINT8, INT8, INT32 or INT64, of any dims' },
  outputs: { output: 'INT64, the dims of `input` without `axis`; [1] if none is left' },
  signature: ({ axis, keepDims }, inputs) => {
    const input = inputs.take('input', { datatypes: COMPARABLE })
    const { dims } = input
    const at = toAxis('axis', axis, dims.length)
    if (dims[at] === 0) refuseDims(input, 'an element along the axis')
    return [{ name: 'output', datatype: 'INT64', dims: keptDims(dims, [at], keepDims) }]
  },
  build: ({ axis, keepDims }, graph) => {
    const { datatype, dims } = graph.port('input')
    const input = graph.input('input')
    // The runtime has no kernel for FP16 on the CPU.
    const value = datatype === 'FP16' ? graph.cast(input, 'FP32') : input
    const keepdims = keepDims || dims.length === 1 ? 1 : 0
    graph.output('output', graph.op('ArgMax', [value], { axis, keepdims }))
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`numpy.argmax(x, axis, keepdims=keepDims)`',
      tolerance: 'none',
      except: 'NaN, which NumPy takes for the greatest; which place is found is not defined here',
    },
  ],
})
