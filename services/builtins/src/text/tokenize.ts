import { z } from 'zod'
import { commonExtent } from '../axes.ts'
import { codeBuiltin } from '../builtin.ts'
import { refuseOption } from '../input-reader.ts'
import { fileOption } from './file-option.ts'

export const TOKENIZER_FILE = 'tokenizer.json'

/** Makes tokens of texts. */
export const tokenize = codeBuiltin({
  name: 'tokenize',
  summary:
    'Makes the tokens of texts by a tokenizer.json of Hugging Face, cut and padded as the file says.',
  options: z.strictObject({
    file: fileOption('File with the tokenizer').default(TOKENIZER_FILE),
    maxLength: z
      .int()
      .min(1)
      .max(2 ** 20)
      .optional()
      .describe('Most tokens of a text or pair, special ones included. Default: as the file says'),
    padding: z
      .enum(['file', 'longest', 'maxLength', 'none'])
      .default('file')
      .describe(
        'Length to which texts are padded: that of the file (longest if it has none), the longest of the request, or maxLength. Without padding, all texts of a request must have the same number of tokens',
      ),
    padId: z
      .int()
      .min(0)
      .max(2 ** 31 - 1)
      .optional()
      .describe('Token of the padding. Default: that of the file, else [PAD] or <pad>, else 0'),
    specialTokens: z
      .boolean()
      .default(true)
      .describe('Whether special tokens of the file are added'),
    maxTextBytes: z
      .int()
      .min(1)
      .max(2 ** 20)
      .default(2 ** 16)
      .describe('Most bytes of a text'),
    datatype: z.enum(['INT64', 'INT32']).default('INT64').describe('Datatype of the outputs'),
  }),
  inputs: {
    texts: 'BYTES, [N]: UTF-8',
    pairs: 'BYTES, [N], optional: the second text of each',
  },
  outputs: {
    input_ids: '`datatype`, [N, T]',
    attention_mask: '`datatype`, [N, T]: 1 for tokens, 0 for padding',
    token_type_ids: '`datatype`, [N, T]: 0 and 1 as the file says for texts and pairs',
  },
  signature: ({ datatype, padding, padId }, inputs) => {
    if (padding === 'none' && padId !== undefined)
      refuseOption('padId', `${padId}`, 'none without padding')
    const texts = inputs.take('texts', { datatypes: ['BYTES'], rank: 1 })
    const pairs = inputs.takeOptional('pairs', { datatypes: ['BYTES'], rank: 1 })
    const count = commonExtent([texts, ...(pairs ? [pairs] : [])], 0)
    return ['input_ids', 'attention_mask', 'token_type_ids'].map((name) => {
      return { name, datatype, dims: [count, -1] }
    })
  },
  arithmetic: [
    {
      case: 'all',
      equals: "`Tokenizer.from_file(file).encode_batch(texts)` of Python's tokenizers 0.23",
      tolerance: 'none',
      except:
        'punctuation, accents, format characters and letters that Unicode has since 2016, and a maxLength below the number of special tokens, which is an error',
    },
    {
      case: 'parts of a file that would give other tokens',
      equals:
        'an error of the load that names the part: added tokens with single_word, BPE with dropout or continuing_subword_prefix, Unigram with byte_fallback, Split and Punctuation that merge with neighbours, and types that its message does not list',
      tolerance: 'none',
    },
  ],
})
