import { z } from 'zod'
import { axisOption, MAX_RANK, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'

/** Reorders dimensions. */
export const transpose = onnxBuiltin({
  name: 'transpose',
  summary: 'Reorders the dimensions of a tensor.',
  options: z.strictObject({
    axes: z
      .array(axisOption('Dimension of the input'))
      .max(MAX_RANK)
      .optional()
      .describe('Dimensions of the input in the order of the output; default: reversed'),
  }),
  inputs: { input: 'any datatype but BF16, of any dims' },
  outputs: { output: 'as `input`, with its dims in another order' },
  signature: ({ axes }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST })
    return [
      { name: 'output', datatype, dims: orderOf(axes, dims.length).map((i) => dims[i] ?? -1) },
    ]
  },
  build: ({ axes }, graph) => {
    const perm = orderOf(axes, graph.port('input').dims.length)
    graph.output('output', graph.op('Transpose', [graph.input('input')], { perm }))
  },
  arithmetic: [{ case: 'all', equals: '`numpy.transpose(x, axes)`', tolerance: 'none' }],
})

/** @throws PortFault if the axes do not name each dimension once. */
function orderOf(axes: readonly number[] | undefined, rank: number): number[] {
  const reversed = Array.from({ length: rank }, (_, i) => rank - 1 - i)
  if (axes === undefined) return reversed
  const order = axes.map((axis, i) => toAxis(`axes[${i}]`, axis, rank))
  if (order.length === rank && new Set(order).size === rank) return order
  return refuseOption('axes', JSON.stringify(axes), `each of the ${rank} dimensions once`)
}
