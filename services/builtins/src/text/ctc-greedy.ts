import { z } from 'zod'
import { commonExtent } from '../axes.ts'
import { codeBuiltin } from '../builtin.ts'
import { refuseDims, refuseOption } from '../input-reader.ts'
import { checkOneOf, fileOption, textsOption } from './file-option.ts'

/** Decodes the steps of a CTC network. */
export const ctcGreedy = codeBuiltin({
  name: 'ctcGreedy',
  summary:
    'Makes texts of the most probable class of each step of a CTC network: leaves out repetitions and blanks.',
  options: z.strictObject({
    alphabet: textsOption('Text of each class, without the blank').optional(),
    file: fileOption(
      'File with the text of a class in each line, in UTF-8, in place of alphabet',
    ).optional(),
    blank: z.int().min(0).max(65_536).default(0).describe('Index of the blank'),
  }),
  inputs: {
    indexes: 'INT32 or INT64, [N, T] or [N, T, 1]: the class of each step',
    scores: 'FP32, [N, T] or [N, T, 1], optional: its probability',
  },
  outputs: {
    text: 'BYTES, [N]',
    score:
      'FP32, [N], with scores alone: mean over the steps that made a letter; 0 without letters',
  },
  signature: ({ alphabet, file, blank }, inputs) => {
    checkOneOf('alphabet', alphabet, file)
    if (alphabet !== undefined && blank > alphabet.length) {
      refuseOption(
        'blank',
        `${blank}`,
        `at most ${alphabet.length}, the number of texts in alphabet`,
      )
    }
    const indexes = inputs.take('indexes', { datatypes: ['INT32', 'INT64'], rank: [2, 3] })
    const scores = inputs.takeOptional('scores', { datatypes: ['FP32'], rank: [2, 3] })
    const given = [indexes, ...(scores ? [scores] : [])]
    const wide = given.find(({ dims }) => ![1, -1].includes(dims[2] ?? 1))
    if (wide !== undefined) refuseDims(wide, '[N,T] or [N,T,1]')
    const count = commonExtent(given, 0)
    commonExtent(given, 1)
    const text = { name: 'text', datatype: 'BYTES', dims: [count] } as const
    return scores === undefined
      ? [text]
      : [text, { name: 'score', datatype: 'FP32', dims: [count] }]
  },
  arithmetic: [
    {
      case: 'all',
      equals: 'CTCLabelDecode of PaddleOCR and rapidocr-onnxruntime',
      tolerance: 'none for text, 1e-6 for score',
    },
  ],
})
