import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'
import { checkOneOf, fileOption, textsOption } from './file-option.ts'

/** Finds labels. */
export const labelIndex = codeBuiltin({
  name: 'labelIndex',
  summary:
    'Replaces labels by their indexes: the inverse of `labelLookup`, such as for the codes of categories.',
  options: z.strictObject({
    labels: textsOption('Labels, from index 0 on, each once').optional(),
    file: fileOption('File with a label in each line, in UTF-8, in place of labels').optional(),
    unknown: z
      .int()
      .min(-1)
      .max(2 ** 31 - 1)
      .optional()
      .describe('Index of texts that are no label. Default: such a text is an error'),
  }),
  inputs: { labels: 'BYTES, [...]' },
  outputs: { indexes: 'INT64, [...]' },
  signature: ({ labels, file }, inputs) => {
    checkOneOf('labels', labels, file)
    const { dims } = inputs.take('labels', { datatypes: ['BYTES'], rank: [1, 8] })
    return [{ name: 'indexes', datatype: 'INT64', dims }]
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`[labels.index(text) for text in texts]` of Python, on bytes',
      tolerance: 'none',
    },
  ],
})
