import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { NUMBERS } from '../datatypes.ts'
import { broadcast, operandValues, takeOperands } from '../operands.ts'

const CHOSEN = NUMBERS.filter((datatype) => datatype !== 'UINT64')

/** Chooses elements by a condition. */
export const where = onnxBuiltin({
  name: 'where',
  summary:
    'Takes each element from one tensor where a condition holds, and a number or that of another tensor elsewhere.',
  options: z.strictObject({
    value: z
      .number()
      .optional()
      .describe('Element where the condition does not hold; default: that of the input `other`'),
  }),
  inputs: {
    condition: 'BOOL, of any dims',
    input: 'a number other than UINT64, of any dims',
    other: 'of the same datatype, where there is no `value`',
  },
  outputs: { output: 'the datatype of `input`, the dims of all broadcast against each other' },
  signature: ({ value }, inputs) => {
    const condition = inputs.take('condition', { datatypes: ['BOOL'] })
    const { datatype, dims } = takeOperands(inputs, value, CHOSEN)
    return [{ name: 'output', datatype, dims: broadcast(dims, condition) }]
  },
  build: ({ value }, graph) => {
    const { datatype } = graph.port('input')
    const operands = operandValues(graph, value, ['UINT8'])
    const output = graph.op('Where', [graph.input('condition'), ...operands])
    graph.output('output', graph.cast(output, datatype))
  },
  arithmetic: [{ case: 'all', equals: '`numpy.where(condition, x, y)`', tolerance: 'none' }],
})
