import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS, onFloats } from '../datatypes.ts'

/** Turns scores into probabilities, each by itself. */
export const sigmoid = onnxBuiltin({
  name: 'sigmoid',
  summary: 'Turns each score into a probability by itself.',
  options: z.strictObject({}),
  inputs: { input: 'FP16, FP32 or FP64, of any dims' },
  outputs: { output: 'as `input`' },
  signature: (_options, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: FLOATS })
    return [{ name: 'output', datatype, dims }]
  },
  build: (_options, graph) => {
    const { datatype } = graph.port('input')
    const compute = (value: string): string => graph.op('Sigmoid', [value])
    graph.output('output', onFloats(graph, graph.input('input'), datatype, compute))
  },
  arithmetic: [
    { case: 'FP32, FP64', equals: '`1 / (1 + numpy.exp(-x))`', tolerance: '1e-6 absolute' },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 absolute' },
  ],
})
