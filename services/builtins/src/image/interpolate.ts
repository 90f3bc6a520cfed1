import { z } from 'zod'
import { refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import type { OnnxAttributes } from '../onnx/write-onnx.ts'
import { fromFloats, type Pictures } from './pixels.ts'
import { nearestPixels, resample } from './resample.ts'

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
