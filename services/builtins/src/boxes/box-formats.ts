import { z } from 'zod'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'

/** How four numbers are a box: two corners, a corner and the sides, or the middle and the sides. */
export const BOX_FORMATS = ['xyxy', 'xywh', 'cxcywh'] as const
export type BoxFormat = (typeof BOX_FORMATS)[number]

export const boxFormat = z.enum(BOX_FORMATS)

/** Converts boxes [..., 4] between formats, in their datatype. @param half - 0.5 in that datatype. */
export function convertBoxFormat(
  graph: OnnxGraph,
  boxes: Value,
  { from, to, half }: { readonly from: BoxFormat; readonly to: BoxFormat; readonly half: Value },
): Value {
  if (from === to) return boxes
  const [first = '', second = ''] = graph.ops('Split', 2, [boxes, graph.list(2, 2)], { axis: -1 })
  const by = (op: string, a: Value, b: Value): Value => graph.op(op, [a, b])
  const toLow: Readonly<Record<BoxFormat, () => Value>> = {
    xyxy: () => first,
    xywh: () => first,
    cxcywh: () => by('Sub', first, by('Mul', second, half)),
  }
  const toSides: Readonly<Record<BoxFormat, () => Value>> = {
    xyxy: () => by('Sub', second, first),
    xywh: () => second,
    cxcywh: () => second,
  }
  const [low, sides] = [toLow[from](), toSides[from]()]
  const parts: Readonly<Record<BoxFormat, () => readonly [Value, Value]>> = {
    xyxy: () => [low, by('Add', low, sides)],
    xywh: () => [low, sides],
    cxcywh: () => [by('Add', low, by('Mul', sides, half)), sides],
  }
  return graph.op('Concat', parts[to](), { axis: -1 })
}
