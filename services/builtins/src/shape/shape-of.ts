import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'

/** Gives the extents of a tensor. */
export const shapeOf = onnxBuiltin({
  name: 'shapeOf',
  summary:
    'Makes a tensor of the extents of another one, such as the height and the width of a picture.',
  options: z.strictObject({}),
  inputs: { input: 'any datatype but BF16, of any dims; its elements are not read' },
  outputs: { output: 'INT64, [R]: the extent of each of the R dimensions' },
  signature: (_options, inputs) => {
    const { dims } = inputs.take('input', { datatypes: MOST })
    return [{ name: 'output', datatype: 'INT64', dims: [dims.length] }]
  },
  build: (_options, graph) => graph.output('output', graph.op('Shape', [graph.input('input')])),
  arithmetic: [{ case: 'all', equals: '`numpy.array(x.shape)`', tolerance: 'none' }],
})
