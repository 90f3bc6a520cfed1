import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'

/** Boxes of whole pixels within a picture, and the size to which they are scaled; FP64 [N] each but for the last two. */
export interface Crops {
  readonly left: Value
  readonly top: Value
  /** Pixels of the box, at least 1. */
  readonly across: Value
  readonly along: Value
  /** Width to which the box is scaled. */
  readonly widths: Value
  /** Width of all crops, INT64 [1]. Columns from `widths` on repeat the last one. */
  readonly width: Value
  readonly height: number
}

/** The two pixels beside a place, and the weight of the second one; [N, count] each. */
interface Sample {
  readonly first: Value
  readonly second: Value
  readonly weight: Value
}

/**
 * Samples boxes of the input `image` bilinearly, as `cv2.resize` does.
 *
 * @returns FP32 [C, N, height, width]: planes, so that weights are the same for long runs of pixels.
 */
export function sampleCrops(graph: OnnxGraph, crops: Crops): Value {
  const { left, top, across, along, widths, width, height } = crops
  const down = graph.op('Expand', [graph.scalar('FP64', height), graph.op('Shape', [along])])
  const rows = sample(graph, { start: top, length: along, scaled: down, count: graph.list(height) })
  const columns = sample(graph, { start: left, length: across, scaled: widths, count: width })
  const pixels = pixelReader(graph)
  const mix = (low: Value, high: Value, weight: Value): Value => {
    const difference = graph.op('Sub', [high, low])
    return graph.op('Add', [low, graph.op('Mul', [difference, weight])])
  }
  const acrossWeight = graph.op('Unsqueeze', [columns.weight, graph.list(1)])
  const alongWeight = graph.op('Unsqueeze', [rows.weight, graph.list(2)])
  const line = (row: Value): Value =>
    mix(pixels(row, columns.first), pixels(row, columns.second), acrossWeight)
  return mix(line(rows.first), line(rows.second), alongWeight)
}

interface Axis {
  readonly start: Value
  readonly length: Value
  readonly scaled: Value
  readonly count: Value
}

function sample(graph: OnnxGraph, { start, length, scaled, count }: Axis): Sample {
  const double = (value: number): Value => graph.scalar('FP64', value)
  const column = (value: Value): Value => graph.op('Unsqueeze', [value, graph.list(1)])
  const end = graph.op('Squeeze', [graph.cast(count, 'FP64')])
  const steps = graph.op('Range', [double(0), end, double(1)])
  const scale = column(graph.op('Div', [length, scaled]))
  const middle = graph.op('Mul', [graph.op('Add', [steps, double(0.5)]), scale])
  const place = graph.op('Sub', [middle, double(0.5)])
  const last = column(graph.op('Sub', [length, double(1)]))
  const within = graph.op('Min', [graph.op('Max', [place, double(0)]), last])
  const floor = graph.op('Floor', [within])
  const next = graph.op('Min', [graph.op('Add', [floor, double(1)]), last])
  const inPicture = (value: Value): Value =>
    graph.cast(graph.op('Add', [value, column(start)]), 'INT64')
  return {
    first: inPicture(floor),
    second: inPicture(next),
    weight: graph.cast(graph.op('Sub', [within, floor]), 'FP32'),
  }
}

/** Reads pixels of the picture by rows [N, h] and columns [N, w]. @returns FP32 [C, N, h, w]. */
function pixelReader(graph: OnnxGraph): (rows: Value, columns: Value) => Value {
  const image = graph.input('image')
  const shape = graph.op('Shape', [image])
  const width = graph.op('Gather', [shape, graph.scalar('INT64', 1)])
  const last = graph.op('Slice', [shape, graph.list(2), graph.list(3)])
  const all = graph.op('ReduceProd', [graph.op('Slice', [shape, graph.list(0), graph.list(2)])])
  const flat = graph.op('Reshape', [image, graph.op('Concat', [all, last], { axis: 0 })])
  return (rows, columns) => {
    const begins = graph.op('Unsqueeze', [graph.op('Mul', [rows, width]), graph.list(2)])
    const across = graph.op('Unsqueeze', [columns, graph.list(1)])
    const places = graph.op('Add', [begins, across])
    // Whole pixels are gathered, which is faster than one channel after the other.
    const pixels = graph.op('Gather', [flat, places], { axis: 0 })
    return graph.cast(graph.op('Transpose', [pixels], { perm: [3, 0, 1, 2] }), 'FP32')
  }
}
