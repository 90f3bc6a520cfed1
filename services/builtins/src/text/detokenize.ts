import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'
import { fileOption } from './file-option.ts'
import { TOKENIZER_FILE } from './tokenize.ts'

/** Makes texts of tokens. */
export const detokenize = codeBuiltin({
  name: 'detokenize',
  summary: 'Makes texts of tokens by a tokenizer.json of Hugging Face.',
  options: z.strictObject({
    file: fileOption('File with the tokenizer').default(TOKENIZER_FILE),
    skipSpecialTokens: z.boolean().default(true).describe('Whether special tokens are left out'),
  }),
  inputs: { ids: 'INT32 or INT64, [..., T]: tokens; those that are not in the file are left out' },
  outputs: { texts: 'BYTES, [...]; [1] for tokens of one dimension' },
  signature: (_options, inputs) => {
    const { dims } = inputs.take('ids', { datatypes: ['INT32', 'INT64'], rank: [1, 8] })
    const outer = dims.length === 1 ? [1] : dims.slice(0, -1)
    return [{ name: 'texts', datatype: 'BYTES', dims: outer }]
  },
  arithmetic: [
    {
      case: 'all',
      equals: "`Tokenizer.from_file(file).decode(ids)` of Python's tokenizers 0.23",
      tolerance: 'none',
    },
  ],
})
