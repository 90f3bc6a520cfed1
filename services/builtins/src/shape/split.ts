import { z } from 'zod'
import { axisOption, toAxis, withExtent } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'
import { MAX_JOINED } from './joined-inputs.ts'

/** Cuts a tensor into parts. */
export const split = onnxBuiltin({
  name: 'split',
  summary: 'Cuts a tensor into parts along a dimension.',
  options: z.strictObject({
    sizes: z
      .array(z.int().min(1))
      .min(1)
      .max(MAX_JOINED)
      .describe('Extents of the parts at `axis`, which add up to that of the input'),
    axis: axisOption('Dimension that is cut').default(-1),
  }),
  inputs: { input: 'any datatype but BF16, of any dims' },
  outputs: { 'output0, output1, …': 'as `input`, one for each of `sizes`' },
  signature: ({ sizes, axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST })
    const at = toAxis('axis', axis, dims.length)
    const sum = sizes.reduce((all, size) => all + size, 0)
    const extent = dims[at] ?? -1
    if (extent !== -1 && extent !== sum) {
      const got = `[${sizes.join(',')}], which are ${sum}`
      refuseOption('sizes', got, `${extent}, the extent at the axis`)
    }
    return sizes.map((size, i) => {
      return { name: `output${i}`, datatype, dims: withExtent(dims, at, size) }
    })
  },
  build: ({ sizes, axis }, graph) => {
    const parts = graph.ops('Split', sizes.length, [graph.input('input'), graph.list(...sizes)], {
      axis,
    })
    parts.forEach((part, i) => graph.output(`output${i}`, part))
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`numpy.split(x, numpy.cumsum(sizes)[:-1], axis)`',
      tolerance: 'none',
    },
  ],
})
