import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS, onFloats } from '../datatypes.ts'
import { keyOption } from '../key-option.ts'

const OPERATORS = {
  abs: 'Abs',
  negative: 'Neg',
  sqrt: 'Sqrt',
  exp: 'Exp',
  log: 'Log',
  sin: 'Sin',
  cos: 'Cos',
  tanh: 'Tanh',
  floor: 'Floor',
  ceil: 'Ceil',
  round: 'Round',
  sign: 'Sign',
} as const

/** Computes a function of each element. */
export const apply = onnxBuiltin({
  name: 'apply',
  summary: 'Computes a function of each element.',
  options: z.strictObject({
    function: keyOption(OPERATORS, 'Function; `round` takes ties to even'),
  }),
  inputs: { input: 'FP16, FP32 or FP64, of any dims' },
  outputs: { output: 'as `input`' },
  signature: (_options, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: FLOATS })
    return [{ name: 'output', datatype, dims }]
  },
  build: ({ function: name }, graph) => {
    const { datatype } = graph.port('input')
    const compute = (value: string): string => graph.op(OPERATORS[name], [value])
    graph.output('output', onFloats(graph, graph.input('input'), datatype, compute))
  },
  arithmetic: [
    {
      case: 'FP32, FP64',
      equals: '`numpy.abs(x)` and so on',
      tolerance: 'none; 2e-6 relative and 1e-6 absolute for `exp`, `log`, `sin`, `cos` and `tanh`',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 relative' },
  ],
})
