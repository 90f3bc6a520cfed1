import { formatShape } from '@tutti/tensor'
import { z } from 'zod'
import { axisOption, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'

/** Drops a dimension of extent 1. */
export const squeeze = onnxBuiltin({
  name: 'squeeze',
  summary: 'Drops a dimension of extent 1.',
  options: z.strictObject({ axis: axisOption('Dimension that is dropped').default(0) }),
  inputs: { input: 'any datatype but BF16, of 2 dims or more, with extent 1 at `axis`' },
  outputs: { output: 'as `input`, without that dimension' },
  signature: ({ axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST, rank: [2, 8] })
    const at = toAxis('axis', axis, dims.length)
    const extent = dims[at] ?? 1
    if (extent !== -1 && extent !== 1) {
      refuseOption('axis', `${axis} of dims ${formatShape(dims)}`, 'a dimension of extent 1')
    }
    return [{ name: 'output', datatype, dims: dims.toSpliced(at, 1) }]
  },
  build: ({ axis }, graph) => {
    graph.output('output', graph.op('Squeeze', [graph.input('input'), graph.list(axis)]))
  },
  arithmetic: [{ case: 'all', equals: '`numpy.squeeze(x, axis)`', tolerance: 'none' }],
})
