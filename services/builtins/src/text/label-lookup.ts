import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'
import { checkOneOf, fileOption, textsOption } from './file-option.ts'

/** Looks labels up. */
export const labelLookup = codeBuiltin({
  name: 'labelLookup',
  summary: 'Replaces indexes by their labels.',
  options: z.strictObject({
    labels: textsOption('Labels, from index 0 on').optional(),
    file: fileOption('File with a label in each line, in UTF-8, in place of labels').optional(),
  }),
  inputs: { indexes: 'INT32 or INT64, [...]' },
  outputs: { labels: 'BYTES, [...]' },
  signature: ({ labels, file }, inputs) => {
    checkOneOf('labels', labels, file)
    const { dims } = inputs.take('indexes', { datatypes: ['INT32', 'INT64'], rank: [1, 8] })
    return [{ name: 'labels', datatype: 'BYTES', dims }]
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`numpy.array(labels)[indexes]`',
      tolerance: 'none',
      except: 'a negative index, which is an error',
    },
  ],
})
