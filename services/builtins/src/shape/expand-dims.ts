import { z } from 'zod'
import { axisOption, MAX_RANK, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'

/** Adds a dimension of extent 1. */
export const expandDims = onnxBuiltin({
  name: 'expandDims',
  summary: 'Adds a dimension of extent 1.',
  options: z.strictObject({
    axis: axisOption('Place of the new dimension in the output').default(0),
  }),
  inputs: { input: 'any datatype but BF16, of any dims' },
  outputs: { output: 'as `input`, with extent 1 at `axis`' },
  signature: ({ axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST, rank: [1, MAX_RANK - 1] })
    const at = toAxis('axis', axis, dims.length + 1)
    return [{ name: 'output', datatype, dims: dims.toSpliced(at, 0, 1) }]
  },
  build: ({ axis }, graph) => {
    graph.output('output', graph.op('Unsqueeze', [graph.input('input'), graph.list(axis)]))
  },
  arithmetic: [{ case: 'all', equals: '`numpy.expand_dims(x, axis)`', tolerance: 'none' }],
})
