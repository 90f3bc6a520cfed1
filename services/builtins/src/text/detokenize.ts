import { z } from 'zod'
import { MAX_RANK } from '../axes.ts'
import { codeBuiltin } from '../builtin.ts'
import { refuseDims } from '../input-reader.ts'
import { fileOption } from './file-option.ts'
import { TOKENIZER_FILE } from './tokenize.ts'

/** Most tokens of one text, and most characters of its tokens: it is put together in memory that has no error for too much. */
const MAX_ROW_TOKENS = 2 ** 20
export const MAX_ROW_LENGTH = 2 ** 24

/** Makes texts of tokens. */
export const detokenize = codeBuiltin({
  name: 'detokenize',
  summary: 'Makes texts of tokens by a tokenizer.json of Hugging Face.',
  options: z.strictObject({
    file: fileOption('File with the tokenizer').default(TOKENIZER_FILE),
    skipSpecialTokens: z.boolean().default(true).describe('Whether special tokens are left out'),
  }),
  inputs: {
    ids: `INT32 or INT64, [..., T], T up to ${MAX_ROW_TOKENS}: tokens, of up to ${MAX_ROW_LENGTH} characters for a text; those that are not in the file are left out`,
  },
  outputs: { texts: 'BYTES, [...]; [1] for tokens of one dimension' },
  signature: (_options, inputs) => {
    const ids = inputs.take('ids', { datatypes: ['INT32', 'INT64'], rank: [1, MAX_RANK] })
    const { dims } = ids
    if ((dims.at(-1) ?? 0) > MAX_ROW_TOKENS)
      refuseDims(ids, `at most ${MAX_ROW_TOKENS} tokens each`)
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
