import type { NamedTensor } from '@tutti/tensor'
import { type ChainStep, type Draw, type StepKind, step } from './step-kind.ts'

/** Pixels of the picture to one cell of the maps. */
const STRIDE = 4
const LINE = { height: 32, minWidth: 100, maxWidth: 100, datatype: 'FP32' }

const compute = (name: string, op: string, input: string, other: string): ChainStep =>
  step(name, 'arithmetic', { input, other: `${other}.output` }, { op })

/** Boxes of maps that have, for each cell, a score, the distances of the four sides, and an angle against the clock. */
function boxSteps(score: string, geometry: string): ChainStep[] {
  return [
    step('xs', 'positions', { input: score }, { axis: -2 }),
    step('ys', 'positions', { input: score }, { axis: -3 }),
    step('cells', 'concat', { input0: 'xs.output', input1: 'ys.output' }, { axis: -1 }),
    step('rows', 'reshape', { input: 'cells.output' }, { shape: [-1, 2] }),
    step('floats', 'cast', { input: 'rows.output' }, { datatype: 'FP32' }),
    step('points', 'arithmetic', { input: 'floats.output' }, { op: 'multiply', value: STRIDE }),
    step('point', 'split', { input: 'points.output' }, { sizes: [1, 1] }),
    step('flat', 'reshape', { input: geometry }, { shape: [-1, 5] }),
    // Top, right, bottom, left, angle.
    step('part', 'split', { input: 'flat.output' }, { sizes: [1, 1, 1, 1, 1] }),
    step('width', 'arithmetic', { input: 'part.output1', other: 'part.output3' }, { op: 'add' }),
    step('height', 'arithmetic', { input: 'part.output0', other: 'part.output2' }, { op: 'add' }),
    step(
      'right',
      'arithmetic',
      { input: 'part.output1', other: 'part.output3' },
      { op: 'subtract' },
    ),
    step(
      'below',
      'arithmetic',
      { input: 'part.output2', other: 'part.output0' },
      { op: 'subtract' },
    ),
    step('along', 'arithmetic', { input: 'right.output' }, { op: 'multiply', value: 0.5 }),
    step('down', 'arithmetic', { input: 'below.output' }, { op: 'multiply', value: 0.5 }),
    step('cos', 'apply', { input: 'part.output4' }, { function: 'cos' }),
    step('sin', 'apply', { input: 'part.output4' }, { function: 'sin' }),
    compute('a', 'multiply', 'cos.output', 'along'),
    compute('b', 'multiply', 'sin.output', 'down'),
    compute('c', 'multiply', 'cos.output', 'down'),
    compute('d', 'multiply', 'sin.output', 'along'),
    compute('e', 'add', 'a.output', 'b'),
    compute('f', 'subtract', 'c.output', 'd'),
    compute('x', 'add', 'point.output0', 'e'),
    compute('y', 'add', 'point.output1', 'f'),
    step('turn', 'apply', { input: 'part.output4' }, { function: 'negative' }),
    step(
      'boxes',
      'concat',
      Object.fromEntries(
        ['x', 'y', 'width', 'height', 'turn'].map((name, i) => [`input${i}`, `${name}.output`]),
      ),
      { axis: 1 },
    ),
    step('scores', 'reshape', { input: score }, { shape: [-1] }),
    step(
      'best',
      'rotatedNms',
      { boxes: 'boxes.output', scores: 'scores.output' },
      {
        scoreThreshold: 0.5,
        iouThreshold: 0.2,
      },
    ),
  ]
}

/** Straightened crops of a picture of floats, from -1 to 1. */
function cropSteps(picture: string): ChainStep[] {
  return [
    step('bytes', 'cast', { input: picture }, { datatype: 'UINT8' }),
    step('crops', 'cropRotated', { image: 'bytes.output', boxes: 'best.boxes' }, LINE),
    step(
      'ready',
      'normalise',
      { image: 'crops.crops' },
      { scale: 1 / 255, mean: [0.5], std: [0.5] },
    ),
  ]
}

function drawMaps({ dice }: Draw, before: readonly number[]): readonly NamedTensor[] {
  const [rows, columns] = [dice.int(6, 10), dice.int(6, 10)]
  const cells = Array.from({ length: rows * columns }, () => [
    dice.float(3, 9),
    dice.float(6, 24),
    dice.float(3, 9),
    dice.float(6, 24),
    dice.float(-0.6, 0.6),
  ])
  const data = new Uint8Array(Float32Array.from(cells.flat()).buffer)
  const sides = [...before, STRIDE * rows, STRIDE * columns, 3]
  const picture = dice.tensor('bytes', 'UINT8', sides)
  const pixels = new Uint8Array(Float32Array.from(picture.data).buffer)
  return [
    dice.tensor('score', 'FP32', [...before, rows, columns, 1], { least: 0, most: 0.7 }),
    { name: 'geometry', datatype: 'FP32', shape: [...before, rows, columns, 5], data },
    { name: 'picture', datatype: 'FP32', shape: sides, data: pixels },
  ]
}

const PYTHON = `
def crops_of(score, geometry, picture):
    rows, columns = np.indices(score.shape[:2]).reshape(2, -1) * ${STRIDE}
    top, right, bottom, left, angle = geometry.reshape(-1, 5).T
    along, down, cos, sin = (right - left) / 2, (bottom - top) / 2, np.cos(angle), np.sin(angle)
    x, y = columns + cos * along + sin * down, rows - sin * along + cos * down
    w, h, turn = left + right, top + bottom, -angle
    rects = [((float(a), float(b)), (float(c), float(d)), float(np.degrees(e))) for a, b, c, d, e in zip(x, y, w, h, turn)]
    kept = list(cv2.dnn.NMSBoxesRotated(rects, score.reshape(-1).tolist(), 0.5, 0.2))
    cos, sin = np.cos(turn)[kept, None], np.sin(turn)[kept, None]
    u, v = np.array([-.5, .5, .5, -.5]) * w[kept, None], np.array([-.5, -.5, .5, .5]) * h[kept, None]
    corners = np.stack([x[kept, None] + u * cos - v * sin, y[kept, None] + u * sin + v * cos], 2).astype(np.float32)
    crops, _ = crop_rotated(picture.astype(np.uint8), corners, [False] * len(kept), 32, 100, 100, None, 0, 'float32')
    return (crops / 255 - 0.5) / 0.5
`
/** Two of 255 beside the reference, but for noise. */
const NEAR = { absolute: 0.017, share: 0.02 }

/** Steps behind a detector of text in pictures (EAST). */
export const TEXT_MAP_KINDS: readonly StepKind[] = [
  {
    rows: [44],
    takes: 'FP32[-1,-1,1], FP32[-1,-1,5], FP32[-1,-1,3]',
    makes: 'FP32[-1,-1,-1]',
    does: 'rotated boxes of a map of text, the best of them cut out and straightened',
    expressed: {
      steps: [
        ...boxSteps('score', 'geometry'),
        ...cropSteps('picture'),
        step('first', 'slice', { input: 'ready.image' }, { index: '0' }),
      ],
      outputs: ['first.output'],
      draw: (draw) => drawMaps(draw, []),
      python: `${PYTHON}out = (crops_of(score, geometry, picture)[0],)`,
      tolerance: NEAR,
    },
  },
  {
    rows: [57],
    takes: 'FP32[-1,-1,-1,1], FP32[-1,-1,-1,5], FP32[-1,-1,-1,3]',
    makes: 'FP32[-1,-1,-1,-1]',
    does: 'rotated boxes of the map of one picture, all of them cut out and straightened',
    expressed: {
      steps: [
        ...boxSteps('score', 'geometry'),
        step('only', 'squeeze', { input: 'picture' }),
        ...cropSteps('only.output'),
      ],
      outputs: ['ready.image'],
      draw: (draw) => drawMaps(draw, [1]),
      python: `${PYTHON}out = (crops_of(score[0], geometry[0], picture[0]),)`,
      tolerance: NEAR,
    },
  },
]
