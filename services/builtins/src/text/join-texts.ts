import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'

const MAX_SEPARATOR = 64

/** Joins texts into one. */
export const joinTexts = codeBuiltin({
  name: 'joinTexts',
  summary: 'Joins the texts of the last dimension into one text each.',
  options: z.strictObject({
    separator: z.string().max(MAX_SEPARATOR).default(' ').describe('Text between two texts'),
  }),
  inputs: { texts: 'BYTES, [..., N]' },
  outputs: { text: 'BYTES, [...]; [1] for texts of one dimension' },
  signature: (_options, inputs) => {
    const { datatype, dims } = inputs.take('texts', { datatypes: ['BYTES'], rank: [1, 8] })
    return [{ name: 'text', datatype, dims: dims.length === 1 ? [1] : dims.slice(0, -1) }]
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`separator.join(texts)` of Python, on bytes',
      tolerance: 'none',
    },
  ],
})
