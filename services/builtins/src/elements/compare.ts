import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { NUMBERS } from '../datatypes.ts'
import { keyOption } from '../key-option.ts'
import { operandValues, takeOperands } from '../operands.ts'

const OPERATORS = {
  equal: 'Equal',
  notEqual: 'Equal',
  less: 'Less',
  lessEqual: 'LessOrEqual',
  greater: 'Greater',
  greaterEqual: 'GreaterOrEqual',
} as const
const COMPARABLE = NUMBERS.filter((datatype) => datatype !== 'UINT64')

/** Compares numbers. */
export const compare = onnxBuiltin({
  name: 'compare',
  summary: 'Compares each element with a number, or the elements of two tensors.',
  options: z.strictObject({
    op: keyOption(OPERATORS, 'Comparison of `input` with the second operand'),
    value: z.number().optional().describe('Second operand; default: the input `other`'),
  }),
  inputs: {
    input: 'a number other than UINT64, of any dims',
    other: 'the second operand, of the same datatype, where there is no `value`',
  },
  outputs: { output: 'BOOL, the dims of both broadcast against each other' },
  signature: ({ value }, inputs) => {
    const { dims } = takeOperands(inputs, value, COMPARABLE)
    return [{ name: 'output', datatype: 'BOOL', dims }]
  },
  build: ({ op, value }, graph) => {
    const found = graph.op(OPERATORS[op], operandValues(graph, value))
    graph.output('output', op === 'notEqual' ? graph.op('Not', [found]) : found)
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`numpy.greater(x, y)` and so on, with `value` in the datatype of `x`',
      tolerance: 'none',
    },
  ],
})
