import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { NUMBERS } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'
import type { Value } from '../onnx/onnx-graph.ts'
import { IMAGE, toChannelsFirst, toChannelsLast } from './image-dims.ts'

const MAX_CHANNELS = 64
const channels = z.array(z.number()).min(1).max(MAX_CHANNELS)

/** Scales and shifts the channels of pictures, as networks are trained with. */
export const normalise = onnxBuiltin({
  name: 'normalise',
  summary:
    'Computes (image * scale - mean) / std for each channel, and puts the channels first on request.',
  options: z.strictObject({
    scale: z
      .number()
      .default(1)
      .describe('Factor of every value, applied first: 0.00392156862745098 for 1/255'),
    mean: channels
      .default([0])
      .describe('What is subtracted after scaling: one number for each channel, or one for all'),
    std: channels
      .default([1])
      .describe('What is divided by after that: one number for each channel, or one for all'),
    inputLayout: z
      .enum(['HWC', 'CHW'])
      .default('HWC')
      .describe('Order of the last three dimensions of the input'),
    layout: z
      .enum(['HWC', 'CHW'])
      .optional()
      .describe('Order of the last three dimensions of the output; default: that of the input'),
    datatype: z.enum(['FP32', 'FP16']).default('FP32').describe('Datatype of the output'),
  }),
  inputs: { image: 'a number, [..., H, W, C] or [..., C, H, W]' },
  outputs: { image: '`datatype`, [..., H, W, C] or [..., C, H, W]' },
  signature: ({ mean, std, inputLayout, layout = inputLayout, datatype }, inputs) => {
    const count = channelsOf(mean, std)
    const last = inputLayout === 'CHW' ? [count, -1, -1] : [-1, -1, count]
    const { dims } = inputs.take('image', { ...IMAGE, datatypes: NUMBERS, last })
    const zero = std.findIndex((number) => Math.fround(number) === 0)
    if (zero !== -1) {
      refuseOption(`std[${zero}]`, `${std[zero]}`, 'a number that is not 0 as FP32')
    }
    return [{ name: 'image', datatype, dims: ordered(dims, inputLayout, layout) }]
  },
  build: ({ scale, mean, std, inputLayout, layout = inputLayout, datatype }, graph) => {
    const { dims } = graph.port('image')
    const order = ordered(
      dims.map((_, axis) => axis),
      inputLayout,
      layout,
    )
    let value = graph.input('image')
    // First, because bytes are moved faster than floats.
    if (layout !== inputLayout) value = graph.op('Transpose', [value], { perm: order })
    value = graph.cast(value, 'FP32')
    const shape = (numbers: readonly number[]) =>
      layout === 'CHW' ? [numbers.length, 1, 1] : [numbers.length]
    const by = (op: string, old: Value, numbers: readonly number[], neutral: number): Value =>
      numbers.every((number) => number === neutral)
        ? old
        : graph.op(op, [old, graph.constant('FP32', numbers, shape(numbers))])
    value = by('Mul', value, [scale], 1)
    value = by('Sub', value, mean, 0)
    value = by('Div', value, std, 1)
    graph.output('image', graph.cast(value, datatype))
  },
  arithmetic: [
    {
      case: 'FP32',
      equals:
        '`(x.astype(f) * f(scale) - mean.astype(f)) / std.astype(f)` with `f = numpy.float32`',
      tolerance: 'none',
    },
    { case: 'FP16', equals: 'the same, then `astype(numpy.float16)`', tolerance: 'none' },
  ],
})

type Layout = 'HWC' | 'CHW'

function ordered(dims: readonly number[], from: Layout, to: Layout): readonly number[] {
  if (from === to) return dims
  return to === 'CHW' ? toChannelsFirst(dims) : toChannelsLast(dims)
}

/** @returns the number of channels that the options speak of, or -1. @throws PortFault if they differ. */
function channelsOf(mean: readonly number[], std: readonly number[]): number {
  const count = Math.max(mean.length, std.length)
  for (const [path, numbers] of [
    ['mean', mean],
    ['std', std],
  ] as const) {
    if (numbers.length === count || numbers.length === 1) continue
    refuseOption(path, `${numbers.length} numbers`, `1, or ${count} as the other option has`)
  }
  return count === 1 ? -1 : count
}
