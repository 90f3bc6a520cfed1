import { roundToEven, type Shape } from '@tutti/tensor'
import { z } from 'zod'
import { refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import { MAX_SIDE } from './image-dims.ts'

const side = z.int().min(1).max(MAX_SIDE)

/** Options that say to which size pictures are scaled. */
export const sizeOptions = {
  width: side.optional().describe('Width in pixels; alone it keeps the aspect ratio'),
  height: side.optional().describe('Height in pixels; alone it keeps the aspect ratio'),
  shortSide: side
    .optional()
    .describe(
      'Pixels of the shorter side, in place of `width` and `height`; it keeps the aspect ratio',
    ),
  longSide: side
    .optional()
    .describe(
      'Pixels of the longer side, in place of `width` and `height`; it keeps the aspect ratio',
    ),
  only: z
    .enum(['shrink', 'enlarge'])
    .optional()
    .describe(
      'Whether pictures are left as they are that would be enlarged, or would shrink; default: neither. For sizes that keep the aspect ratio',
    ),
  rounding: z
    .enum(['floor', 'nearest', 'ceil'])
    .optional()
    .describe(
      'How the side that follows from the other is rounded, `nearest` with ties to even; default `floor`',
    ),
  multipleOf: side
    .optional()
    .describe(
      'Both sides are rounded to the nearest multiple of so many pixels, at least one of them',
    ),
}

export interface SizeOptions {
  readonly width?: number | undefined
  readonly height?: number | undefined
  readonly shortSide?: number | undefined
  readonly longSide?: number | undefined
  readonly only?: 'shrink' | 'enlarge' | undefined
  readonly rounding?: 'floor' | 'nearest' | 'ceil' | undefined
  readonly multipleOf?: number | undefined
}

/** @throws PortFault for options that do not go together. */
export function checkSize(o: SizeOptions): void {
  const given = (['width', 'height', 'shortSide', 'longSide'] as const).filter((key) => o[key])
  const isExact = given.join() === 'width,height'
  if (!isExact && given.length !== 1) {
    const want = 'width, height or both, shortSide, or longSide'
    refuseOption(given[1] ?? 'width', given.length === 0 ? 'nothing' : given.join(' and '), want)
  }
  for (const key of ['only', 'rounding', 'multipleOf'] as const) {
    if (!isExact || o[key] === undefined) continue
    refuseOption(
      key,
      `${o[key]} with width and height`,
      'none, or a size that keeps the aspect ratio',
    )
  }
}

/** The sides of the output where they are known, -1 where they are not. */
export function targetSides(o: SizeOptions, dims: Shape): readonly [number, number] {
  if (o.width && o.height) return [o.height, o.width]
  const sides = [dims.at(-3) ?? -1, dims.at(-2) ?? -1] as const
  if (sides.includes(-1)) {
    const isFree = o.only === undefined && o.multipleOf === undefined
    return isFree ? [o.height ?? -1, o.width ?? -1] : [-1, -1]
  }
  const [height, width] = sides.map((one) => targetSide(o, sides, one))
  return [height ?? -1, width ?? -1]
}

function targetSide(o: SizeOptions, sides: readonly [number, number], one: number): number {
  const wanted = wantedOf(o)
  const reference = referenceOf(o, sides)
  const stays =
    o.only === 'shrink' ? wanted >= reference : o.only === 'enlarge' && wanted <= reference
  const round = { floor: Math.floor, nearest: roundToEven, ceil: Math.ceil }[o.rounding ?? 'floor']
  const scaled = stays ? one : Math.max(1, round((one * wanted) / reference))
  if (o.multipleOf === undefined) return scaled
  return Math.max(1, roundToEven(scaled / o.multipleOf)) * o.multipleOf
}

const wantedOf = (o: SizeOptions): number => o.width ?? o.height ?? o.shortSide ?? o.longSide ?? 1

function referenceOf(o: SizeOptions, [height, width]: readonly [number, number]): number {
  if (o.height) return height
  if (o.width) return width
  return o.shortSide ? Math.min(height, width) : Math.max(height, width)
}

/** Computes height and width of the output, INT64 [2], as `targetSides` does. @param sides - FP64 [2]. */
export function targetValue(graph: OnnxGraph, o: SizeOptions, sides: Value): Value {
  if (o.width && o.height) return graph.list(o.height, o.width)
  const double = (value: number): Value => graph.scalar('FP64', value)
  const part = (which: number): Value =>
    graph.op('Slice', [sides, graph.list(which), graph.list(which + 1)])
  const extreme = (): Value => graph.op(o.shortSide ? 'ReduceMin' : 'ReduceMax', [sides])
  const reference = o.height ? part(0) : o.width ? part(1) : extreme()
  const wanted = double(wantedOf(o))
  const exact = graph.op('Div', [graph.op('Mul', [sides, wanted]), reference])
  const operator = { floor: 'Floor', nearest: 'Round', ceil: 'Ceil' }[o.rounding ?? 'floor']
  let scaled = graph.op('Max', [graph.op(operator, [exact]), double(1)])
  if (o.only !== undefined) {
    const comparison = o.only === 'shrink' ? 'GreaterOrEqual' : 'LessOrEqual'
    const stays = graph.op(comparison, [wanted, reference])
    scaled = graph.op('Where', [stays, sides, scaled])
  }
  if (o.multipleOf !== undefined) {
    const unit = double(o.multipleOf)
    const count = graph.op('Round', [graph.op('Div', [scaled, unit])])
    scaled = graph.op('Mul', [graph.op('Max', [count, double(1)]), unit])
  }
  return graph.cast(scaled, 'INT64')
}

/** Swaps height and width, as boxes have x before y. */
export function toXY(graph: OnnxGraph, pair: Value): Value {
  return graph.op('Gather', [pair, graph.list(1, 0)], { axis: 0 })
}
