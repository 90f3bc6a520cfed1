import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { refuseOption } from '../input-reader.ts'
import { keyOption } from '../key-option.ts'
import { broadcast } from '../operands.ts'

const OPERATORS = { and: 'And', or: 'Or', xor: 'Xor', not: 'Not' } as const

/** Combines truth values. */
export const logical = onnxBuiltin({
  name: 'logical',
  summary: 'Combines the truth values of two tensors, or negates those of one.',
  options: z.strictObject({
    op: keyOption(OPERATORS, 'Operation; `not` has no `other`'),
  }),
  inputs: { input: 'BOOL, of any dims', other: 'BOOL, the second operand' },
  outputs: { output: 'BOOL, the dims of both broadcast against each other' },
  signature: ({ op }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: ['BOOL'] })
    if (op === 'not' && inputs.has('other')) refuseOption('op', 'not of two inputs', 'one input')
    const other = op === 'not' ? undefined : inputs.take('other', { datatypes: ['BOOL'] })
    const output = other === undefined ? dims : broadcast(dims, other)
    return [{ name: 'output', datatype, dims: output }]
  },
  build: ({ op }, graph) => {
    const names = op === 'not' ? ['input'] : ['input', 'other']
    const operands = names.map((name) => graph.input(name))
    graph.output('output', graph.op(OPERATORS[op], operands))
  },
  arithmetic: [{ case: 'all', equals: '`numpy.logical_and(x, y)` and so on', tolerance: 'none' }],
})
