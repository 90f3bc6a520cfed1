import { z } from 'zod'
import { axisOption, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'

/** Counts the elements along an axis. */
export const positions = onnxBuiltin({
  name: 'positions',
  summary:
    'Makes the place of each element along an axis, such as the row and the column of each cell of a map.',
  options: z.strictObject({ axis: axisOption('Dimension that is counted').default(0) }),
  inputs: { input: 'any datatype but BF16, of any dims; its elements are not read' },
  outputs: { output: 'INT64, with the dims of `input`' },
  signature: ({ axis }, inputs) => {
    const { dims } = inputs.take('input', { datatypes: MOST })
    toAxis('axis', axis, dims.length)
    return [{ name: 'output', datatype: 'INT64', dims }]
  },
  build: ({ axis }, graph) => {
    const rank = graph.port('input').dims.length
    const at = toAxis('axis', axis, rank)
    const shape = graph.op('Shape', [graph.input('input')])
    const extent = graph.op('Gather', [shape, graph.scalar('INT64', at)])
    const [zero, one] = [graph.scalar('INT64', 0), graph.scalar('INT64', 1)]
    const places = graph.op('Range', [zero, extent, one])
    const after = Array.from({ length: rank - 1 - at }, (_, i) => i + 1)
    const column =
      after.length === 0 ? places : graph.op('Unsqueeze', [places, graph.list(...after)])
    graph.output('output', graph.op('Expand', [column, shape]))
  },
  arithmetic: [{ case: 'all', equals: '`numpy.indices(x.shape)[axis]`', tolerance: 'none' }],
})
