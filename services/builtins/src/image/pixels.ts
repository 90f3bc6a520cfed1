import type { Datatype } from '@tutti/tensor'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'

/** Pictures of an input as a stack [N, H, W, C]. */
export interface Pictures {
  readonly value: Value
  readonly datatype: Datatype
  /** Height and width, FP64 [2]. */
  readonly sides: Value
}

/** Opens the pictures of an input. */
export function openPictures(graph: OnnxGraph, name: string): Pictures {
  const { datatype, dims } = graph.port(name)
  const input = graph.input(name)
  const shape = graph.op('Shape', [input])
  const sides = graph.cast(graph.op('Slice', [shape, graph.list(-3), graph.list(-1)]), 'FP64')
  if (dims.length === 4) return { value: input, datatype, sides }
  if (dims.length === 3) {
    return { value: graph.op('Unsqueeze', [input, graph.list(0)]), datatype, sides }
  }
  const stack = graph.op('ReduceProd', [graph.op('Slice', [shape, graph.list(0), graph.list(-3)])])
  const last = graph.op('Slice', [shape, graph.list(-3), graph.list(dims.length)])
  const all = graph.op('Concat', [stack, last], { axis: 0 })
  // Or an extent of 0 would stand for that of the input.
  return { value: graph.op('Reshape', [input, all], { allowzero: 1 }), datatype, sides }
}

/** Gives a stack [N, h, w, C] the dimensions that the input has before the last three, and makes it an output. */
export function outputPictures(graph: OnnxGraph, name: string, from: string, value: Value): void {
  const rank = graph.port(from).dims.length
  if (rank === 4) return graph.output(name, value)
  if (rank === 3) return graph.output(name, graph.op('Squeeze', [value, graph.list(0)]))
  const before = [graph.op('Shape', [graph.input(from)]), graph.list(0), graph.list(-3)]
  const after = [graph.op('Shape', [value]), graph.list(1), graph.list(4)]
  const parts = [graph.op('Slice', before), graph.op('Slice', after)]
  const shape = graph.op('Concat', parts, { axis: 0 })
  graph.output(name, graph.op('Reshape', [value, shape], { allowzero: 1 }))
}

/** Converts FP32 pixels to a datatype; those of an integer are rounded, ties to even, and limited to its range. */
export function fromFloats(graph: OnnxGraph, value: Value, datatype: Datatype): Value {
  if (datatype === 'FP32') return value
  if (datatype === 'FP16') return graph.cast(value, 'FP16')
  const most = datatype === 'UINT8' ? 255 : 65_535
  const bounds = [graph.scalar('FP32', 0), graph.scalar('FP32', most)]
  return graph.cast(graph.op('Clip', [graph.op('Round', [value]), ...bounds]), datatype)
}
