import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'
import { keyOption } from '../key-option.ts'
import { operandValues, takeOperands } from '../operands.ts'

const OPERATORS = {
  add: 'Add',
  subtract: 'Sub',
  multiply: 'Mul',
  divide: 'Div',
  power: 'Pow',
  maximum: 'Max',
  minimum: 'Min',
} as const

/** Computes with two numbers. */
export const arithmetic = onnxBuiltin({
  name: 'arithmetic',
  summary: 'Computes with each element and a number, or with the elements of two tensors.',
  options: z.strictObject({
    op: keyOption(OPERATORS, 'Operation; `divide` and `power` are for floats'),
    value: z.number().optional().describe('Second operand; default: the input `other`'),
  }),
  inputs: {
    input: 'FP16, FP32, FP64, INT32 or INT64, of any dims',
    other: 'the second operand, of the same datatype, where there is no `value`',
  },
  outputs: { output: 'the datatype of `input`, the dims of both broadcast against each other' },
  signature: ({ op, value }, inputs) => {
    const operands = takeOperands(inputs, value, [...FLOATS, 'INT32', 'INT64'])
    if ((op === 'divide' || op === 'power') && !operands.datatype.startsWith('FP')) {
      refuseOption('op', `${op} of ${operands.datatype}`, 'floats: cast the input first')
    }
    return [{ name: 'output', ...operands }]
  },
  build: ({ op, value }, graph) => {
    const { datatype } = graph.port('input')
    const output = graph.op(OPERATORS[op], operandValues(graph, value))
    graph.output('output', graph.cast(output, datatype))
  },
  arithmetic: [
    {
      case: 'FP32, FP64, INT32, INT64',
      equals: '`numpy.add(x, y)` and so on, with `value` in the datatype of `x`',
      tolerance: 'none; 1e-6 relative for `power`',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 relative' },
  ],
})
