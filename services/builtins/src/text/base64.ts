import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'

/** Makes bytes of base64, and base64 of bytes. */
export const base64 = codeBuiltin({
  name: 'base64',
  summary: 'Decodes base64 to bytes, or encodes bytes as base64, as clients of JSON send pictures.',
  options: z.strictObject({
    direction: z.enum(['decode', 'encode']).describe('Which of the two is made of the input'),
  }),
  inputs: { data: 'BYTES, [...]' },
  outputs: { data: 'BYTES, [...]' },
  signature: (_options, inputs) => {
    const { datatype, dims } = inputs.take('data', { datatypes: ['BYTES'], rank: [1, 8] })
    return [{ name: 'data', datatype, dims }]
  },
  arithmetic: [
    {
      case: '`decode`',
      equals: "Python's `base64.b64decode`",
      tolerance: 'none',
      except:
        'characters beside base64 and white space, which Python leaves out and which are an error here',
    },
    { case: '`encode`', equals: "Python's `base64.b64encode`", tolerance: 'none' },
  ],
})
