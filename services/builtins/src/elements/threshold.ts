import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { refuseOption } from '../input-reader.ts'
import { checkConstant } from '../operands.ts'

/** Separates small from large values. */
export const threshold = onnxBuiltin({
  name: 'threshold',
  summary: 'Replaces the elements on one side of a threshold.',
  options: z.strictObject({
    threshold: z.number().describe('Elements above it are one side; those up to it the other'),
    type: z
      .enum(['binary', 'binaryInverse', 'truncate', 'toZero', 'toZeroInverse'])
      .default('binary')
      .describe(
        'What elements above, and others, become: `binary` `maxValue` and 0, `binaryInverse` 0 and `maxValue`, `truncate` the threshold and what they are, `toZero` what they are and 0, `toZeroInverse` 0 and what they are',
      ),
    maxValue: z
      .number()
      .optional()
      .describe('Value of the types `binary` and `binaryInverse`; default 1'),
  }),
  inputs: { input: 'FP32, FP64 or UINT8, of any dims' },
  outputs: { output: 'as `input`' },
  signature: ({ threshold: bound, type, maxValue }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: ['FP32', 'FP64', 'UINT8'] })
    if (maxValue !== undefined && !type.startsWith('binary')) {
      refuseOption('maxValue', `${maxValue} with type ${type}`, 'none, or the type binary')
    }
    checkConstant('threshold', bound, datatype)
    checkConstant('maxValue', maxValue, datatype)
    return [{ name: 'output', datatype, dims }]
  },
  build: ({ threshold: bound, type, maxValue = 1 }, graph) => {
    const { datatype } = graph.port('input')
    const input = graph.input('input')
    const at = graph.scalar(datatype, bound)
    // The runtime compares no UINT8 on the CPU.
    const wide = datatype === 'UINT8' ? 'INT32' : datatype
    const compared = wide === datatype ? input : graph.cast(input, wide)
    const isAbove = graph.op('Greater', [compared, graph.scalar(wide, bound)])
    const [zero, most] = [graph.scalar(datatype, 0), graph.scalar(datatype, maxValue)]
    const sides = {
      binary: [most, zero],
      binaryInverse: [zero, most],
      truncate: [at, input],
      toZero: [input, zero],
      toZeroInverse: [zero, input],
    } as const
    graph.output('output', graph.op('Where', [isAbove, ...sides[type]]))
  },
  arithmetic: [
    {
      case: 'FP32, FP64, UINT8',
      equals: '`cv2.threshold(x, threshold, maxValue, cv2.THRESH_BINARY)` and so on',
      tolerance: 'none',
    },
  ],
})
