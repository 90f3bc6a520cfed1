import type { Shape } from '@tutti/tensor'
import { z } from 'zod'
import { MAX_RANK } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { NUMBERS } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'
import { checkPad, padValues } from '../operands.ts'

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
    checkPad({ mode, value }, datatype)
    const first = dims.length - widths.length
    return [
      {
        name: 'output',
        datatype,
        dims: dims.map((extent, i) => paddedExtent(extent, widths[i - first], mode)),
      },
    ]
  },
  build: ({ widths, mode, value }, graph) => {
    const { datatype, dims } = graph.port('input')
    const axes = widths.map((_, i) => dims.length - widths.length + i)
    const sides = [0, 1].flatMap((side) => widths.map((both) => both[side] ?? 0))
    const pads = graph.list(...sides)
    const padded = padValues(graph, graph.input('input'), { datatype, pads, axes, mode, value })
    graph.output('output', padded)
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

function paddedExtent(extent: number, widths: Shape | undefined, mode: string): number {
  const [before = 0, after = 0] = widths ?? []
  if (extent === -1) return -1
  const got = `[${before},${after}]`
  if (mode === 'reflect' && Math.max(before, after) > Math.max(0, extent - 1)) {
    refuseOption(
      'widths',
      got,
      `at most ${Math.max(0, extent - 1)} for a mirror image of ${extent}`,
    )
  }
  if (mode === 'edge' && extent === 0 && before + after > 0) {
    refuseOption('widths', got, '[0,0] at an extent of 0, which has no edge')
  }
  return extent + before + after
}
