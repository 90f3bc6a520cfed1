import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'
import { checkConstant } from '../operands.ts'

const CLIPPED = [...FLOATS, 'UINT8', 'INT8', 'INT32', 'INT64'] as const

/** Limits elements to a range. */
export const clip = onnxBuiltin({
  name: 'clip',
  summary: 'Limits each element to a range.',
  options: z.strictObject({
    min: z.number().optional().describe('Least value; default: none'),
    max: z.number().optional().describe('Greatest value; default: none'),
  }),
  inputs: { input: 'FP16, FP32, FP64, UINT8, INT8, INT32 or INT64, of any dims' },
  outputs: { output: 'as `input`' },
  signature: ({ min, max }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: CLIPPED })
    if (min === undefined && max === undefined) refuseOption('min', 'nothing', 'min, max or both')
    checkConstant('min', min, datatype)
    checkConstant('max', max, datatype)
    if (min !== undefined && max !== undefined && min > max) {
      refuseOption('min', `${min}`, `at most the option max, ${max}`)
    }
    return [{ name: 'output', datatype, dims }]
  },
  build: ({ min, max }, graph) => {
    const { datatype } = graph.port('input')
    const type = datatype === 'FP16' ? 'FP32' : datatype
    const bound = (value?: number): string => (value === undefined ? '' : graph.scalar(type, value))
    const input = graph.cast(graph.input('input'), type)
    graph.output('output', graph.cast(graph.op('Clip', [input, bound(min), bound(max)]), datatype))
  },
  arithmetic: [
    { case: 'all but FP16', equals: '`numpy.clip(x, min, max)`', tolerance: 'none' },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: 'none' },
  ],
})
