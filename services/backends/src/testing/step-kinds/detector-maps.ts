import { type ChainStep, type StepKind, step } from './step-kind.ts'

const LEVELS = [
  { name: 'far', cells: 20, stride: 32 },
  { name: 'middle', cells: 40, stride: 16 },
  { name: 'near', cells: 80, stride: 8 },
]
const DISTANCES = Array.from({ length: 16 }, (_, i) => i)

/** Points of the cells of a map in pixels of the picture, and the pixels between two of them. */
function pointsOf({ name, stride }: (typeof LEVELS)[number]): ChainStep[] {
  const as = (part: string): string => `${name}-${part}`
  return [
    step(as('map'), 'slice', { input: name }, { index: '0, 0' }),
    step(as('x'), 'positions', { input: `${as('map')}.output` }, { axis: 1 }),
    step(as('y'), 'positions', { input: `${as('map')}.output` }, { axis: 0 }),
    step(
      as('cells'),
      'stack',
      { input0: `${as('x')}.output`, input1: `${as('y')}.output` },
      { axis: 2 },
    ),
    step(as('rows'), 'reshape', { input: `${as('cells')}.output` }, { shape: [-1, 2] }),
    step(as('floats'), 'cast', { input: `${as('rows')}.output` }, { datatype: 'FP32' }),
    step(
      as('middles'),
      'arithmetic',
      { input: `${as('floats')}.output` },
      { op: 'add', value: 0.5 },
    ),
    step(
      as('points'),
      'arithmetic',
      { input: `${as('middles')}.output` },
      { op: 'multiply', value: stride },
    ),
    step(as('column'), 'slice', { input: `${as('floats')}.output` }, { index: ':, :1' }),
    step(
      as('none'),
      'arithmetic',
      { input: `${as('column')}.output` },
      { op: 'multiply', value: 0 },
    ),
    step(
      as('stride'),
      'arithmetic',
      { input: `${as('none')}.output` },
      { op: 'add', value: stride },
    ),
    step(as('flat'), 'reshape', { input: name }, { shape: [80, -1] }),
  ]
}

/** The same part of all levels, joined. */
const joined = (name: string, part: string, axis: number): ChainStep =>
  step(
    name,
    'concat',
    Object.fromEntries(LEVELS.map((level, i) => [`input${i}`, `${level.name}-${part}.output`])),
    { axis },
  )

/** Three maps of a detector, before they are boxes. */
export const MAPS_OF_A_DETECTOR: StepKind = {
  rows: [1],
  takes: 'FP32[1,80,20,20], FP32[1,80,40,40], FP32[1,80,80,80]',
  makes: 'INT32[1], FP32[-1,4], FP32[-1]',
  does: 'boxes of three maps of a detector: for each of 4 sides 16 shares of distances, and 16 classes',
  expressed: {
    steps: [
      ...LEVELS.flatMap(pointsOf),
      joined('points', 'points', 0),
      joined('strides', 'stride', 0),
      joined('all', 'flat', 1),
      step('parts', 'split', { input: 'all.output' }, { sizes: [64, 16], axis: 0 }),
      step('bins', 'reshape', { input: 'parts.output0' }, { shape: [4, 16, -1] }),
      step('shares', 'softmax', { input: 'bins.output' }, { axis: 1 }),
      step(
        'weighted',
        'arithmetic',
        { input: 'shares.output' },
        { op: 'multiply' },
        {
          other: { datatype: 'FP32', shape: [16, 1], value: DISTANCES },
        },
      ),
      step('cells', 'reduce', { input: 'weighted.output' }, { op: 'sum', axes: [1] }),
      step('sides', 'transpose', { input: 'cells.output' }),
      step(
        'pixels',
        'arithmetic',
        { input: 'sides.output', other: 'strides.output' },
        { op: 'multiply' },
      ),
      step('halves', 'split', { input: 'pixels.output' }, { sizes: [2, 2] }),
      step(
        'low',
        'arithmetic',
        { input: 'points.output', other: 'halves.output0' },
        { op: 'subtract' },
      ),
      step(
        'high',
        'arithmetic',
        { input: 'points.output', other: 'halves.output1' },
        { op: 'add' },
      ),
      step('boxes', 'concat', { input0: 'low.output', input1: 'high.output' }, { axis: 1 }),
      step('rows', 'transpose', { input: 'parts.output1' }),
      step('scores', 'sigmoid', { input: 'rows.output' }),
      step(
        'best',
        'nms',
        { boxes: 'boxes.output', scores: 'scores.output' },
        { scoreThreshold: 0.5 },
      ),
      step('count', 'cast', { input: 'best.count' }, { datatype: 'INT32' }),
    ],
    outputs: ['count.output', 'best.boxes', 'best.scores'],
    draw: ({ dice }) =>
      LEVELS.map(({ name, cells }) => {
        // Few of the classes are above one half, so that their order does not hang on the last bit.
        return dice.tensor(name, 'FP32', [1, 80, cells, cells], { least: -40, most: 0.02 })
      }),
    python: `
def level(head, stride):
  flat = head.reshape(80, -1)
  e = np.exp(flat[:64].reshape(4, 16, -1))
  sides = ((e / e.sum(1, keepdims=True)) * np.arange(16)[:, None]).sum(1).T * stride
  y, x = np.indices(head.shape[2:]).reshape(2, -1)
  points = np.stack([x + 0.5, y + 0.5], 1) * stride
  return np.concatenate([points - sides[:, :2], points + sides[:, 2:]], 1), 1 / (1 + np.exp(-flat[64:].T))
boxes, scores = (np.concatenate(parts).astype(np.float32) for parts in zip(level(far, 32), level(middle, 16), level(near, 8)))
kept = best_of_classes(boxes, scores, 0.5)
out = (np.array([len(kept)], np.int32), boxes[kept], scores.max(1)[kept])`,
    tolerance: { absolute: 2e-3 },
  },
}
