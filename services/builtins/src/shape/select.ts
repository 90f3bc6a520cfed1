import { z } from 'zod'
import { axisOption, toAxis, withExtent } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseDims } from '../input-reader.ts'

/** Keeps elements by a mask. */
export const select = onnxBuiltin({
  name: 'select',
  summary: 'Keeps the elements along an axis, such as the rows, for which a mask is true.',
  options: z.strictObject({ axis: axisOption('Dimension that the mask is about').default(0) }),
  inputs: {
    input: 'any datatype but BF16, of any dims',
    mask: 'BOOL, [N], with the extent of `input` at `axis`',
  },
  outputs: { output: 'as `input`, with as many elements at `axis` as `mask` has true ones' },
  signature: ({ axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST })
    const at = toAxis('axis', axis, dims.length)
    const mask = inputs.take('mask', { datatypes: ['BOOL'], rank: 1 })
    const [extent, length] = [dims[at] ?? -1, mask.dims[0] ?? -1]
    if (extent !== -1 && length !== -1 && extent !== length) {
      refuseDims(mask, `dims [${extent}], as the input has at axis ${axis}`)
    }
    return [{ name: 'output', datatype, dims: withExtent(dims, at, -1) }]
  },
  build: ({ axis }, graph) => {
    const inputs = [graph.input('input'), graph.input('mask')]
    graph.output('output', graph.op('Compress', inputs, { axis }))
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`numpy.compress(mask, x, axis)`',
      tolerance: 'none',
    },
  ],
})
