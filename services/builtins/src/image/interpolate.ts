import { elementCount, type Shape } from '@tutti/tensor'
import { z } from 'zod'
import { refuseDims, refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import type { OnnxAttributes } from '../onnx/write-onnx.ts'
import { MAX_OUTPUT_BYTES } from '../output-bytes.ts'
import type { Port } from '../ports.ts'
import { fromFloats, type Pictures } from './pixels.ts'
import { nearestPixels, resample } from './resample.ts'

/** Elements that fit into the bound of outputs as FP32, in which pictures are computed. */
const MOST_FLOATS = MAX_OUTPUT_BYTES / 4
/** Elements that are made for each of the output. */
const ELEMENTS = { nearest: 0, bilinear: 1, area: 2, bicubic: 4 } as const

/** Words for the bound of `checkScaled`. */
export const SCALED_BOUND = `up to ${MOST_FLOATS} elements, half as many with \`area\`, a quarter with \`bicubic\` without \`antialias\``

/** Options of built-ins that scale pictures. */
export const interpolateOptions = {
  method: z
    .enum(['nearest', 'bilinear', 'bicubic', 'area'])
    .default('bilinear')
    .describe('How the pixels are computed'),
  antialias: z
    .boolean()
    .default(false)
    .describe(
      'Whether `bilinear` and `bicubic` average when they shrink, as PIL does, and not OpenCV',
    ),
}

export interface Interpolation {
  readonly method: 'nearest' | 'bilinear' | 'bicubic' | 'area'
  readonly antialias: boolean
}

/** @throws PortFault for a method that has no antialias. */
export function checkInterpolation({ method, antialias }: Interpolation): void {
  if (!antialias || method === 'bilinear' || method === 'bicubic') return
  refuseOption(
    'antialias',
    `true with method ${method}`,
    'false, or the method bilinear or bicubic',
  )
}

/**
 * Holds what is made on the way against the bound of outputs: a picture of one row can be scaled to gigabytes.
 *
 * @param dims - those of the output.
 * @throws PortFault
 */
export function checkScaled(input: Port, dims: Shape, { method, antialias }: Interpolation): void {
  const isBytes = antialias && input.datatype === 'UINT8'
  const each = isBytes ? 0.25 : antialias ? 1 : ELEMENTS[method]
  // One side is scaled after the other, but with bilinear.
  const second = antialias ? -3 : -2
  const isAtOnce = method === 'bilinear' && !antialias
  const between = isAtOnce ? dims : dims.with(second, input.dims.at(second) ?? -1)
  const elements = Math.max(...[dims, between].map((shape) => elementCount(shape.map(Math.abs))))
  if (elements * each <= MOST_FLOATS) return
  const bytes = elements * each * 4
  refuseDims(
    input,
    `pictures that take at most ${MAX_OUTPUT_BYTES} bytes for ${method}, and not ${bytes}`,
  )
}

/**
 * Scales pictures.
 *
 * @param to - height and width, INT64 [2].
 * @returns the stack, in the datatype of the pictures.
 */
export function interpolate(
  graph: OnnxGraph,
  pictures: Pictures,
  to: Value,
  { method, antialias }: Interpolation,
): Value {
  const { value, datatype } = pictures
  if (method === 'nearest') return nearestPixels(graph, pictures, to)
  if (antialias && datatype === 'UINT8') return likePil(graph, value, to, method)
  const pixels = graph.cast(value, 'FP32')
  if (!antialias && method !== 'bilinear') {
    return fromFloats(graph, resample(graph, { ...pictures, value: pixels }, to, method), datatype)
  }
  const smooth = antialias ? smoothing(method) : { mode: 'linear' }
  const resized = graph.op('Resize', [pixels, '', '', to], { ...smooth, axes: [1, 2] })
  return fromFloats(graph, resized, datatype)
}

/** PIL computes bytes with whole numbers, as the runtime does, and rounds between the sides: the width comes first. */
function likePil(
  graph: OnnxGraph,
  value: Value,
  to: Value,
  method: Interpolation['method'],
): Value {
  const along = (pixels: Value, axis: number): Value => {
    const size = graph.op('Slice', [to, graph.list(axis - 1), graph.list(axis)])
    return graph.op('Resize', [pixels, '', '', size], { ...smoothing(method), axes: [axis] })
  }
  return along(along(value, 2), 1)
}

function smoothing(method: Interpolation['method']): OnnxAttributes {
  const mode = method === 'bicubic' ? 'cubic' : 'linear'
  return { mode, antialias: 1, exclude_outside: 1, cubic_coeff_a: { float: -0.5 } }
}
