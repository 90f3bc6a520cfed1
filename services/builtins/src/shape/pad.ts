import type { Shape } from '@tutti/tensor'
import { z } from 'zod'
import { MAX_RANK } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { NUMBERS } from '../datatypes.ts'
import { PortFault, refuseOption } from '../input-reader.ts'
import { checkConstant, inputAs, widened } from '../operands.ts'

const MAX_WIDTH = 2 ** 20
const width = z.int().min(0).max(MAX_WIDTH)

/** Adds elements around a tensor. */
export const pad = onnxBuiltin({
  name: 'pad',
  summary: 'Adds elements before and after those of a tensor.',
  options: z.strictObject({
    widths: z
      .array(z.array(width).min(2).max(2))
      .min(1)
      .max(MAX_RANK)
      .describe('Elements that are added before and after those of each of the last dimensions'),
    mode: z
      .enum(['constant', 'edge', 'reflect'])
      .default('constant')
      .describe('The added elements: `value`, the nearest element, or a mirror image without it'),
    value: z.number().optional().describe('Value of the added elements of `constant`; default 0'),
  }),
  inputs: { input: 'a number, of any dims' },
  outputs: { output: 'as `input`, with larger extents' },
  signature: ({ widths, mode, value }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: NUMBERS })
    if (widths.length > dims.length) {
      refuseOption('widths', `${widths.length} pairs`, `at most ${dims.length}`)
    }
    if (value !== undefined && mode !== 'constant') {
      refuseOption('value', `${value} with mode ${mode}`, 'none, or the mode constant')
    }
    if (value !== undefined) checkConstant('value', value, datatype)
    const first = dims.length - widths.length
    return [
      {
        name: 'output',
        datatype,
        dims: dims.map((extent, i) => padded(extent, widths[i - first], mode)),
      },
    ]
  },
  build: ({ widths, mode, value = 0 }, graph) => {
    const { datatype, dims } = graph.port('input')
    const axes = widths.map((_, i) => dims.length - widths.length + i)
    const pads = [...widths.map(([before = 0]) => before), ...widths.map(([, after = 0]) => after)]
    const type = widened(datatype, ['UINT8', 'INT8', 'UINT32'])
    const fill = mode === 'constant' ? graph.scalar(type, value) : ''
    const inputs = [inputAs(graph, 'input', type), graph.list(...pads), fill, graph.list(...axes)]
    const output = graph.op('Pad', inputs, { mode })
    graph.output('output', type === datatype ? output : graph.cast(output, datatype))
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        '`numpy.pad(x, widths, mode, constant_values=value)`, with no width for the dimensions before',
      tolerance: 'none',
    },
  ],
})

function padded(extent: number, widths: Shape | undefined, mode: string): number {
  const [before = 0, after = 0] = widths ?? []
  if (extent === -1) return -1
  if (mode === 'reflect' && Math.max(before, after) > Math.max(0, extent - 1)) {
    const want = `at most ${Math.max(0, extent - 1)} for a mirror image of ${extent}`
    throw new PortFault({ path: 'widths', got: `[${before},${after}]`, want })
  }
  if (mode === 'edge' && extent === 0 && before + after > 0) {
    throw new PortFault({
      path: 'widths',
      got: `[${before},${after}]`,
      want: '[0,0] at an extent of 0, which has no edge',
    })
  }
  return extent + before + after
}
