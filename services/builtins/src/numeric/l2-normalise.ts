import { z } from 'zod'
import { axisOption, toAxis } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS, onFloats } from '../datatypes.ts'

/** Gives vectors the length 1. */
export const l2Normalise = onnxBuiltin({
  name: 'l2Normalise',
  summary: 'Divides each vector along an axis by its length, so that products of two are cosines.',
  options: z.strictObject({
    axis: axisOption('Dimension along which a vector lies').default(-1),
    epsilon: z
      .number()
      .min(0)
      .default(1e-12)
      .describe('Least length by which a vector is divided, so that zeros stay zeros'),
  }),
  inputs: { input: 'FP16, FP32 or FP64, of any dims' },
  outputs: { output: 'as `input`' },
  signature: ({ axis }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: FLOATS })
    toAxis('axis', axis, dims.length)
    return [{ name: 'output', datatype, dims }]
  },
  build: ({ axis, epsilon }, graph) => {
    const { datatype } = graph.port('input')
    const output = onFloats(graph, graph.input('input'), datatype, (value, type) => {
      const length = graph.op('ReduceL2', [value, graph.list(axis)], { keepdims: 1 })
      return graph.op('Div', [value, graph.op('Max', [length, graph.scalar(type, epsilon)])])
    })
    graph.output('output', output)
  },
  arithmetic: [
    {
      case: 'FP32, FP64',
      equals:
        '`x / numpy.maximum(numpy.linalg.norm(x, axis=axis, keepdims=True), epsilon)`, as `torch.nn.functional.normalize`',
      tolerance: '1e-6 absolute',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 absolute' },
  ],
})
