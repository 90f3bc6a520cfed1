import { z } from 'zod'
import { axisOption, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS, onFloats } from '../datatypes.ts'

/** Turns scores into probabilities. */
export const softmax = onnxBuiltin({
  name: 'softmax',
  summary: 'Turns scores into probabilities that add up to 1 along an axis.',
  options: z.strictObject({
    axis: axisOption('Dimension along which the probabilities add up to 1').default(-1),
  }),
  inputs: { input: 'FP16, FP32 or FP64, of any dims' },
  outputs: { output: 'as `input`' },
  signature: ({ axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: FLOATS })
    toAxis('axis', axis, dims.length)
    return [{ name: 'output', datatype, dims }]
  },
  build: ({ axis }, graph) => {
    const { datatype } = graph.port('input')
    const output = onFloats(graph, graph.input('input'), datatype, (value) =>
      graph.op('Softmax', [value], { axis }),
    )
    graph.output('output', output)
  },
  arithmetic: [
    {
      case: 'FP32, FP64',
      equals: '`e = numpy.exp(x - x.max(axis, keepdims=True)); e / e.sum(axis, keepdims=True)`',
      tolerance: '2e-6 relative and 1e-7 absolute',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 relative' },
  ],
})
