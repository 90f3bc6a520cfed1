import { z } from 'zod'
import { commonExtent } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { type InputReader, refuseDims, refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import type { Port } from '../ports.ts'
import { boxFormat, convertBoxFormat } from './box-formats.ts'
import { suppressionOptions } from './suppression-options.ts'

/** Most scores of each box for each class that occurs. */
export const MAX_CLASS_SCORES = 2 ** 26
const BOXES = ['FP16', 'FP32'] as const

const options = z.strictObject({
  ...suppressionOptions,
  classAware: z
    .boolean()
    .optional()
    .describe(
      'Whether only boxes of the same class suppress each other; default: where there are classes',
    ),
  multiLabel: z
    .boolean()
    .optional()
    .describe(
      'Whether a box counts for each class over the threshold, and not for its best one alone; default false. For scores [N, C]',
    ),
  boxFormat: boxFormat
    .default('xyxy')
    .describe('Numbers of a box of the input: corners, corner and sides, or middle and sides'),
  padded: z
    .boolean()
    .default(false)
    .describe(
      'Whether the outputs always have `maxOutputs` rows; those from `count` on have 0, and -1 as class and index',
    ),
})
type NmsOptions = z.output<typeof options>

/** Keeps the best of boxes that overlap. */
export const nms = onnxBuiltin({
  name: 'nms',
  summary: 'Keeps the box of the highest score where several overlap (non-maximum suppression).',
  options,
  inputs: {
    boxes: 'FP16 or FP32, [N, 4]',
    scores: 'FP16 or FP32, [N], or [N, C] for C classes',
    classes: `INT32 or INT64, [N]: classes of scores [N], up to ${MAX_CLASS_SCORES} / N different ones; not there: all boxes are of class 0`,
  },
  outputs: {
    boxes: 'FP32, [M, 4]: corners x1, y1, x2, y2, by falling score',
    scores: 'FP32, [M]',
    classes: 'INT64, [M]',
    indices: 'INT64, [M]: rows of the input',
    count: 'INT64, [1]: number of boxes that were found',
  },
  signature: (o, inputs) => {
    const boxes = inputs.take('boxes', { datatypes: BOXES, rank: 2, last: [4] })
    const scores = inputs.take('scores', { datatypes: BOXES, rank: [1, 2] })
    commonExtent([boxes, scores], 0)
    checkClasses(o, scores, inputs)
    const rows = o.padded ? o.maxOutputs : -1
    return [
      { name: 'boxes', datatype: 'FP32', dims: [rows, 4] },
      { name: 'scores', datatype: 'FP32', dims: [rows] },
      { name: 'classes', datatype: 'INT64', dims: [rows] },
      { name: 'indices', datatype: 'INT64', dims: [rows] },
      { name: 'count', datatype: 'INT64', dims: [1] },
    ]
  },
  build: (o, graph) => {
    const boxes = cornersOf(graph, o)
    const list = isMultiLabel(graph, o) ? allScores(graph) : bestScores(graph)
    const places = byScore(graph, o, list.scores, suppress(graph, o, boxes, list))
    const count = graph.op('Shape', [places])
    const rows = list.rowsOf(places)
    const pick = (value: Value, at: Value): Value => graph.op('Gather', [value, at], { axis: 0 })
    const outputs = [
      ['boxes', pick(boxes, rows), graph.scalar('FP32', 0)],
      ['scores', pick(list.scores, places), graph.scalar('FP32', 0)],
      ['classes', list.classesOf(places), graph.scalar('INT64', -1)],
      ['indices', rows, graph.scalar('INT64', -1)],
    ] as const
    const missing = graph.op('Sub', [graph.list(o.maxOutputs), count])
    const pads = graph.op('Concat', [graph.list(0), missing], { axis: 0 })
    for (const [name, value, fill] of outputs) {
      const padded = () => graph.op('Pad', [value, pads, fill, graph.list(0)])
      graph.output(name, o.padded ? padded() : value)
    }
    graph.output('count', count)
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        '`torchvision.ops.nms`, or `batched_nms` with classes, of the boxes with `score > scoreThreshold`; of equal scores the first row comes first',
      tolerance: 'none, but for an intersection over union that is the threshold within 1e-6',
    },
  ],
})

/** @throws PortFault for options about classes where there are none. */
function checkClasses(o: NmsOptions, scores: Port, inputs: InputReader): void {
  const isTable = scores.dims.length === 2
  if (scores.dims[1] === 0) refuseDims(scores, 'at least one class')
  if (isTable && inputs.has('classes')) {
    refuseOption('inputs.classes', 'a tensor', 'none, as scores [N, C] say the classes')
  }
  const classes = inputs.takeOptional('classes', { datatypes: ['INT32', 'INT64'], rank: 1 })
  if (classes !== undefined) commonExtent([scores, classes], 0)
  if (o.multiLabel !== undefined && !isTable) {
    refuseOption('multiLabel', `${o.multiLabel} with scores [N]`, 'none, or scores [N, C]')
  }
  if (o.classAware === true && !isTable && classes === undefined) {
    refuseOption('classAware', 'true without classes', 'scores [N, C], or the input classes')
  }
}

function cornersOf(graph: OnnxGraph, o: NmsOptions): Value {
  const boxes = graph.cast(graph.input('boxes'), 'FP32')
  const half = graph.scalar('FP32', 0.5)
  return convertBoxFormat(graph, boxes, { from: o.boxFormat, to: 'xyxy', half })
}

/** Scores in one list, in which a box has one place, or one for each class. */
interface Scored {
  /** FP32 [L]. */
  readonly scores: Value
  /** Rows of the input by places, INT64. */
  rowsOf(places: Value): Value
  classesOf(places: Value): Value
}

/** Each box has one place. */
const rowsOf = (places: Value): Value => places

function bestScores(graph: OnnxGraph): Scored {
  const input = graph.cast(graph.input('scores'), 'FP32')
  const pick = (classes: Value) => (places: Value) =>
    graph.op('Gather', [classes, places], { axis: 0 })
  if (graph.port('scores').dims.length === 2) {
    const classes = graph.op('ArgMax', [input], { axis: 1, keepdims: 0 })
    const scores = graph.op('ReduceMax', [input, graph.list(1)], { keepdims: 0 })
    return { scores, rowsOf, classesOf: pick(classes) }
  }
  const zeros = (places: Value): Value => graph.op('Mul', [places, graph.scalar('INT64', 0)])
  const isGiven = graph.has('classes')
  const classesOf = isGiven ? pick(graph.cast(graph.input('classes'), 'INT64')) : zeros
  return { scores: input, rowsOf, classesOf }
}

function allScores(graph: OnnxGraph): Scored {
  const count = classCount(graph)
  return {
    scores: graph.op('Reshape', [graph.cast(graph.input('scores'), 'FP32'), graph.list(-1)]),
    rowsOf: (places) => graph.op('Div', [places, count]),
    classesOf: (places) => graph.op('Mod', [places, count]),
  }
}

/** C of scores [N, C], INT64 [1]. */
function classCount(graph: OnnxGraph): Value {
  return graph.op('Slice', [
    graph.op('Shape', [graph.input('scores')]),
    graph.list(1),
    graph.list(2),
  ])
}

/** Finds the places of the boxes that are kept. Those of several classes, which do not suppress each other, are rows of scores. */
function suppress(
  graph: OnnxGraph,
  o: NmsOptions,
  boxes: Value,
  { scores, ...list }: Scored,
): Value {
  const isAware = o.classAware ?? (graph.has('classes') || graph.port('scores').dims.length === 2)
  if (isAware && isMultiLabel(graph, o)) {
    const table = graph.op('Transpose', [graph.cast(graph.input('scores'), 'FP32')])
    const [classes, rows] = select(graph, o, boxes, table)
    return graph.op('Add', [graph.op('Mul', [rows, classCount(graph)]), classes])
  }
  const isOver = graph.op('Greater', [scores, graph.scalar('FP32', o.scoreThreshold)])
  const places = graph.op('Squeeze', [graph.op('NonZero', [isOver]), graph.list(0)])
  const pick = (value: Value, at: Value): Value => graph.op('Gather', [value, at], { axis: 0 })
  const own = pick(scores, places)
  const rows = isAware
    ? scoresByClass(graph, own, list.classesOf(places))
    : graph.op('Unsqueeze', [own, graph.list(0)])
  const [, found] = select(graph, o, pick(boxes, list.rowsOf(places)), rows)
  return pick(places, found)
}

/** @param scores - [G, B] of B boxes, those of each row by themselves. @returns rows and boxes, INT64 [S] each. */
function select(
  graph: OnnxGraph,
  o: NmsOptions,
  boxes: Value,
  scores: Value,
): readonly [rows: Value, boxes: Value] {
  const first = graph.list(0)
  const selected = graph.op('NonMaxSuppression', [
    graph.op('Unsqueeze', [boxes, first]),
    graph.op('Unsqueeze', [scores, first]),
    graph.list(o.maxOutputs),
    graph.constant('FP32', [o.iouThreshold]),
    graph.constant('FP32', [o.scoreThreshold]),
  ])
  const column = (i: number): Value =>
    graph.op('Gather', [selected, graph.scalar('INT64', i)], { axis: 1 })
  return [column(1), column(2)]
}

/** Orders places by falling score, the first of equal ones first, and cuts them to the most that are wanted. */
function byScore(graph: OnnxGraph, o: NmsOptions, scores: Value, places: Value): Value {
  const [sorted = ''] = graph.ops('Unique', 1, [places])
  const found = graph.op('Gather', [scores, sorted], { axis: 0 })
  const most = graph.op('Min', [graph.op('Shape', [found]), graph.list(o.maxOutputs)])
  const [, order = ''] = graph.ops('TopK', 2, [found, most], { axis: 0 })
  return graph.op('Gather', [sorted, order], { axis: 0 })
}

/** A row of scores for each class that occurs, [G, K], in which boxes of other classes are below each threshold. */
function scoresByClass(graph: OnnxGraph, scores: Value, classes: Value): Value {
  const [unique = ''] = graph.ops('Unique', 1, [classes])
  const column = graph.op('Unsqueeze', [unique, graph.list(1)])
  const isOf = graph.op('Equal', [column, classes])
  return graph.op('Where', [isOf, scores, graph.scalar('FP32', -Infinity)])
}

function isMultiLabel(graph: OnnxGraph, { multiLabel }: NmsOptions): boolean {
  return multiLabel === true && graph.port('scores').dims.length === 2
}
