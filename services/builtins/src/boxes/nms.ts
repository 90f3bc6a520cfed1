import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { type InputReader, PortFault, refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import type { Port } from '../ports.ts'
import { boxFormat, convertBoxFormat } from './box-formats.ts'

const MAX_OUTPUTS = 2 ** 16
/** The least float, for boxes of other classes: below each threshold. */
const LEAST = -3.4e38
const BOXES = ['FP16', 'FP32'] as const

const options = z.strictObject({
  scoreThreshold: z.number().default(0.25).describe('Boxes up to this score are left out'),
  iouThreshold: z
    .number()
    .min(0)
    .max(1)
    .default(0.45)
    .describe(
      'Of two boxes whose intersection over union is greater, the one of the lower score is left out',
    ),
  maxOutputs: z
    .int()
    .min(1)
    .max(MAX_OUTPUTS)
    .default(300)
    .describe('Most boxes of the output: those of the highest scores'),
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
    classes: 'INT32 or INT64, [N]: classes of scores [N]; not there: all boxes are of class 0',
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
    checkRows(boxes, scores)
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
    const found = candidatesOf(graph, o)
    const boxes = graph.op('Gather', [cornersOf(graph, o), found.rows], { axis: 0 })
    const isAware = o.classAware ?? (graph.has('classes') || graph.port('scores').dims.length === 2)
    const kept = suppress(graph, o, { ...found, boxes, isAware })
    const count = graph.op('Shape', [kept])
    const rows = (value: Value): Value => graph.op('Gather', [value, kept], { axis: 0 })
    const outputs = [
      ['boxes', boxes, graph.scalar('FP32', 0)],
      ['scores', found.scores, graph.scalar('FP32', 0)],
      ['classes', found.classes, graph.scalar('INT64', -1)],
      ['indices', found.rows, graph.scalar('INT64', -1)],
    ] as const
    const missing = graph.op('Sub', [graph.list(o.maxOutputs), count])
    const pads = graph.op('Concat', [graph.list(0), missing], { axis: 0 })
    for (const [name, value, fill] of outputs) {
      const padded = () => graph.op('Pad', [rows(value), pads, fill, graph.list(0)])
      graph.output(name, o.padded ? padded() : rows(value))
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

/** @throws PortFault if boxes and scores are not of the same number. */
function checkRows(boxes: Port, { name, dims }: Port): void {
  const [wanted = -1, got = -1] = [boxes.dims[0], dims[0]]
  if (wanted === -1 || got === -1 || wanted === got) return
  const want = `${wanted} rows, as boxes has`
  throw new PortFault({ path: `inputs.${name}`, got: `dims [${dims.join(',')}]`, want })
}

/** @throws PortFault for options about classes where there are none. */
function checkClasses(o: NmsOptions, scores: Port, inputs: InputReader): void {
  const isTable = scores.dims.length === 2
  if (isTable && inputs.has('classes')) {
    const want = 'none, as scores [N, C] say the classes'
    throw new PortFault({ path: 'inputs.classes', got: 'a tensor', want })
  }
  const classes = inputs.takeOptional('classes', { datatypes: ['INT32', 'INT64'], rank: 1 })
  if (classes !== undefined) checkRows(scores, classes)
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

/** Boxes over the threshold, [K] each: rows of the input, scores and classes. */
interface Candidates {
  readonly rows: Value
  readonly scores: Value
  readonly classes: Value
}

function candidatesOf(graph: OnnxGraph, { scoreThreshold, multiLabel }: NmsOptions): Candidates {
  const threshold = graph.scalar('FP32', scoreThreshold)
  const scores = graph.cast(graph.input('scores'), 'FP32')
  const isTable = graph.port('scores').dims.length === 2
  const over = (value: Value): Value =>
    graph.op('NonZero', [graph.op('Greater', [value, threshold])])
  if (isTable && multiLabel === true) {
    const places = over(scores)
    const [rows = '', classes = ''] = graph.ops('Split', 2, [places], { axis: 0, num_outputs: 2 })
    const found = graph.op('GatherND', [scores, graph.op('Transpose', [places])])
    const flat = (value: Value): Value => graph.op('Squeeze', [value, graph.list(0)])
    return { rows: flat(rows), scores: found, classes: flat(classes) }
  }
  const last = graph.list(1)
  const best = isTable ? graph.op('ReduceMax', [scores, last], { keepdims: 0 }) : scores
  const rows = graph.op('Squeeze', [over(best), graph.list(0)])
  const pick = (value: Value): Value => graph.op('Gather', [value, rows], { axis: 0 })
  const classes = isTable
    ? pick(graph.op('ArgMax', [scores], { axis: 1, keepdims: 0 }))
    : graph.has('classes')
      ? pick(graph.cast(graph.input('classes'), 'INT64'))
      : graph.op('Mul', [rows, graph.scalar('INT64', 0)])
  return { rows, scores: pick(best), classes }
}

/** @returns the places of the kept candidates, by falling score. */
function suppress(
  graph: OnnxGraph,
  o: NmsOptions,
  {
    boxes,
    scores,
    classes,
    isAware,
  }: Candidates & { readonly boxes: Value; readonly isAware: boolean },
): Value {
  const [first, second] = [graph.list(0), graph.list(0, 1)]
  const each = isAware
    ? graph.op('Unsqueeze', [scoresByClass(graph, scores, classes), first])
    : graph.op('Unsqueeze', [scores, second])
  const selected = graph.op('NonMaxSuppression', [
    graph.op('Unsqueeze', [boxes, first]),
    each,
    graph.list(o.maxOutputs),
    graph.constant('FP32', [o.iouThreshold]),
    graph.constant('FP32', [o.scoreThreshold]),
  ])
  // A row is batch, class and box.
  const places = graph.op('Gather', [selected, graph.scalar('INT64', 2)], { axis: 1 })
  const found = graph.op('Gather', [scores, places], { axis: 0 })
  const most = graph.op('Min', [graph.op('Shape', [found]), graph.list(o.maxOutputs)])
  const [, order = ''] = graph.ops('TopK', 2, [found, most], { axis: 0 })
  return graph.op('Gather', [places, order], { axis: 0 })
}

/** A row of scores for each class that occurs, [G, K], in which boxes of other classes are below each threshold. */
function scoresByClass(graph: OnnxGraph, scores: Value, classes: Value): Value {
  const [unique = ''] = graph.ops('Unique', 1, [classes])
  const column = graph.op('Unsqueeze', [unique, graph.list(1)])
  const isOf = graph.op('Equal', [column, classes])
  return graph.op('Where', [isOf, scores, graph.scalar('FP32', LEAST)])
}
