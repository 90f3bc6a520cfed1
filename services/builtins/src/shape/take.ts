import { z } from 'zod'
import { axisOption, MAX_RANK, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseDims } from '../input-reader.ts'

/** Picks elements by their places. */
export const take = onnxBuiltin({
  name: 'take',
  summary: 'Picks elements along an axis by their places, in the order of the places.',
  options: z.strictObject({ axis: axisOption('Dimension in which the places are').default(0) }),
  inputs: {
    input: 'any datatype but BF16, of any dims',
    indices:
      'INT32 or INT64, of any dims; negative counts from the end. A place beyond the extent is an error',
  },
  outputs: { output: 'as `input`, with the dims of `indices` at the place of `axis`' },
  signature: ({ axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST })
    const indices = inputs.take('indices', { datatypes: ['INT32', 'INT64'] })
    const at = toAxis('axis', axis, dims.length)
    const taken = dims.toSpliced(at, 1, ...indices.dims)
    if (taken.length > MAX_RANK) refuseDims(indices, `an output of at most ${MAX_RANK} dimensions`)
    return [{ name: 'output', datatype, dims: taken }]
  },
  build: ({ axis }, graph) => {
    const inputs = [graph.input('input'), graph.input('indices')]
    graph.output('output', graph.op('Gather', inputs, { axis }))
  },
  arithmetic: [{ case: 'all', equals: '`numpy.take(x, indices, axis)`', tolerance: 'none' }],
})
