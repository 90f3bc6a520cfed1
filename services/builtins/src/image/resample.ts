import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import type { Pictures } from './pixels.ts'

/** OpenCV's. PIL has -0.5. */
const CUBIC_A = -0.75

/** Writes FP64 arithmetic. */
class Doubles {
  readonly graph: OnnxGraph
  constructor(graph: OnnxGraph) {
    this.graph = graph
  }

  number(value: number): Value {
    return this.graph.scalar('FP64', value)
  }

  add = (a: Value, b: Value): Value => this.graph.op('Add', [a, b])
  subtract = (a: Value, b: Value): Value => this.graph.op('Sub', [a, b])
  multiply = (a: Value, b: Value): Value => this.graph.op('Mul', [a, b])
  divide = (a: Value, b: Value): Value => this.graph.op('Div', [a, b])
  floor = (a: Value): Value => this.graph.op('Floor', [a])
  min = (a: Value, b: Value): Value => this.graph.op('Min', [a, b])
  max = (a: Value, b: Value): Value => this.graph.op('Max', [a, b])

  /** The numbers 0, 1, ... below a count, FP64 [count]. */
  range(count: Value): Value {
    const end = this.graph.op('Squeeze', [count])
    return this.graph.op('Range', [this.number(0), end, this.number(1)])
  }

  column(value: Value): Value {
    return this.graph.op('Unsqueeze', [value, this.graph.list(1)])
  }

  /** The place of each value, cut to 0 up to the last pixel of a side. */
  places(value: Value, side: Value): Value {
    const last = this.subtract(side, this.number(1))
    return this.graph.cast(this.min(this.max(value, this.number(0)), last), 'INT64')
  }
}

/** Height or width, FP64 [1]. */
function sideOf(graph: OnnxGraph, sides: Value, which: 0 | 1): Value {
  return graph.op('Slice', [sides, graph.list(which), graph.list(which + 1)])
}

/** Takes the nearest pixels as OpenCV does: those at or before each place. */
export function nearestPixels(graph: OnnxGraph, { value, sides }: Pictures, to: Value): Value {
  const d = new Doubles(graph)
  const target = graph.cast(to, 'FP64')
  const along = (pixels: Value, which: 0 | 1): Value => {
    const [from, count] = [sideOf(graph, sides, which), sideOf(graph, target, which)]
    // Two divisions, as OpenCV has them, so that both round in the same way.
    const step = d.divide(d.number(1), d.divide(count, from))
    const places = d.places(d.floor(d.multiply(d.range(count), step)), from)
    return graph.op('Gather', [pixels, places], { axis: 1 + which })
  }
  return along(along(value, 0), 1)
}

/** Weights of pixels for each pixel of the output, [count, taps] both. */
interface Taps {
  readonly places: Value
  readonly weights: Value
}

/** Each pixel of the output is the mean of the area that it covers. */
function areaTaps(d: Doubles, from: Value, count: Value): Taps {
  const scale = d.divide(from, count)
  const start = d.column(d.multiply(d.range(count), scale))
  const taps = d.add(d.graph.op('Ceil', [scale]), d.number(1))
  const cell = d.add(d.floor(start), d.range(taps))
  const end = d.min(d.add(cell, d.number(1)), d.add(start, scale))
  const covered = d.max(d.subtract(end, d.max(cell, start)), d.number(0))
  return { places: d.places(cell, from), weights: d.divide(covered, scale) }
}

/** Four pixels around the place of each, the outermost ones repeated beyond the border. */
function cubicTaps(d: Doubles, from: Value, count: Value): Taps {
  const half = d.number(0.5)
  const scale = d.divide(from, count)
  const center = d.column(d.subtract(d.multiply(d.add(d.range(count), half), scale), half))
  const cell = d.add(d.floor(center), d.graph.constant('FP64', [-1, 0, 1, 2]))
  const x = d.graph.op('Abs', [d.subtract(cell, center)])
  const polynomial = (...[first = 0, ...rest]: readonly number[]): Value =>
    rest.reduce((sum, factor) => d.add(d.multiply(sum, x), d.number(factor)), d.number(first))
  const near = polynomial(CUBIC_A + 2, -(CUBIC_A + 3), 0, 1)
  const far = polynomial(CUBIC_A, -5 * CUBIC_A, 8 * CUBIC_A, -4 * CUBIC_A)
  const isNear = d.graph.op('LessOrEqual', [x, d.number(1)])
  return { places: d.places(cell, from), weights: d.graph.op('Where', [isNear, near, far]) }
}

/**
 * Scales pictures by a matrix product for each side, of the few pixels that each pixel of the output is made of: the whole matrix would be
 * nearly all zeros.
 */
export function resample(
  graph: OnnxGraph,
  { value, sides }: Pictures,
  to: Value,
  method: 'area' | 'bicubic',
): Value {
  const d = new Doubles(graph)
  const target = graph.cast(to, 'FP64')
  // The side is the first dimension, so that all others are the columns of one matrix.
  const along = (pixels: Value, which: 0 | 1): Value => {
    const [from, count] = [sideOf(graph, sides, which), sideOf(graph, target, which)]
    const { places, weights } = (method === 'area' ? areaTaps : cubicTaps)(d, from, count)
    // [count, taps, all others]
    const rows = graph.op('Gather', [graph.op('Flatten', [pixels]), places], { axis: 0 })
    const each = graph.op('Unsqueeze', [graph.cast(weights, 'FP32'), graph.list(1)])
    const others = [graph.op('Shape', [pixels]), graph.list(1), graph.list(4)]
    const shape = [graph.cast(count, 'INT64'), graph.op('Slice', others)]
    return graph.op(
      'Reshape',
      [graph.op('MatMul', [each, rows]), graph.op('Concat', shape, { axis: 0 })],
      { allowzero: 1 },
    )
  }
  const perm = (pixels: Value, order: readonly number[]): Value =>
    graph.op('Transpose', [pixels], { perm: order })
  const low = along(perm(value, [1, 0, 2, 3]), 0)
  return perm(along(perm(low, [2, 1, 0, 3]), 1), [1, 2, 0, 3])
}
