// needs: python
import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { compareWithNumpy, type NumpyCase } from '../testing/compare-with-numpy.ts'
import { type Dice, python } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { numbersOf, numberTensor } from '../testing/random-tensors.ts'

t.setTimeout(120_000)

/** The functions of torchvision and of the documentation, in NumPy. */
const SETUP = `
import math
def convert(b, source, target):
    a, c = b[..., :2], b[..., 2:]
    half = b.dtype.type(0.5)
    low = a - c * half if source == 'cxcywh' else a
    wh = c - a if source == 'xyxy' else c
    if source == target: return b
    return np.concatenate({'xyxy': [low, low + wh], 'xywh': [low, wh], 'cxcywh': [low + wh * half, wh]}[target], -1)

def iou(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    inter = np.prod(np.maximum(high - low, 0))
    area = lambda x: np.prod(x[2:] - x[:2])
    return inter / (area(a) + area(b) - inter) if inter > 0 else 0.0

def nms(boxes, scores, bound):
    # As torchvision.ops.nms, with the first of equal scores.
    kept = []
    for i in np.argsort(-scores, kind='stable'):
        if all(iou(boxes[i], boxes[k]) <= bound for k in kept): kept.append(i)
    return kept

def crop(image, box, w, h):
    x1, y1, x2, y2 = [int(v) for v in box]
    H, W = image.shape[:2]
    x1, y1 = min(max(x1, 0), W - 1), min(max(y1, 0), H - 1)
    x2, y2 = max(min(x2, W), x1 + 1), max(min(y2, H), y1 + 1)
    own = w if w > 0 else min(-w, math.ceil((x2 - x1) * h / (y2 - y1)))
    out = cv2.resize(image[y1:y2, x1:x2].astype(np.float32), (own, h)).reshape(h, own, image.shape[2])
    if image.dtype.kind == 'u': out = np.clip(np.rint(out), 0, np.iinfo(image.dtype).max)
    return out.astype(image.dtype)
`

const FORMATS = ['xyxy', 'xywh', 'cxcywh'] as const

/** Corners of boxes, in a picture of 100 pixels. */
function corners(dice: Dice, count: number): number[][] {
  return Array.from({ length: count }, () => {
    const [x, y] = [dice.float(0, 80), dice.float(0, 80)]
    return [x, y, x + dice.float(5, 40), y + dice.float(5, 40)]
  })
}

function toFormat([x1 = 0, y1 = 0, x2 = 0, y2 = 0]: number[], format: string): number[] {
  const [w, h] = [x2 - x1, y2 - y1]
  if (format === 'xyxy') return [x1, y1, x2, y2]
  return format === 'xywh' ? [x1, y1, w, h] : [x1 + w / 2, y1 + h / 2, w, h]
}

function nmsCase(dice: Dice): NumpyCase {
  const count = dice.pick(0, 1, 5, 40)
  const boxFormat = dice.pick(...FORMATS)
  const boxes = numberTensor(
    'boxes',
    'FP32',
    [count, 4],
    corners(dice, count).flatMap((box) => toFormat(box, boxFormat)),
  )
  const kind = dice.pick('table', 'classes', 'none')
  const width = dice.int(1, 5)
  const bounds = { least: 0, most: 1 }
  const scores = dice.tensor('scores', 'FP32', kind === 'table' ? [count, width] : [count], bounds)
  const classes = dice.tensor('classes', dice.pick('INT32', 'INT64'), [count], {
    least: -3,
    most: 4,
  })
  const multiLabel = kind === 'table' ? dice.pick(undefined, true, false) : undefined
  const classAware = dice.pick(undefined, kind === 'none' ? undefined : true, false)
  const maxOutputs = dice.pick(1, 3, 300)
  const padded = dice.isTrue()
  const [scoreThreshold, iouThreshold] = [dice.pick(0, 0.25, 0.6), dice.pick(0, 0.2, 0.45, 1)]
  const setup = `${SETUP}
corner = convert(boxes, '${boxFormat}', 'xyxy')
if ${python(multiLabel === true)}:
    rows, found = np.nonzero(scores > ${scoreThreshold})
    s = scores[rows, found]
elif scores.ndim == 2:
    best = scores.max(1) if len(scores) else np.zeros(0, np.float32)
    rows, = np.nonzero(best > ${scoreThreshold})
    s, found = best[rows], (scores.argmax(1) if len(scores) else np.zeros(0, np.int64))[rows]
else:
    rows, = np.nonzero(scores > ${scoreThreshold})
    s, found = scores[rows], ${kind === 'classes' ? 'classes.astype(np.int64)[rows]' : 'np.zeros(len(rows), np.int64)'}
groups = np.unique(found) if ${python(classAware ?? kind !== 'none')} else [None]
kept = []
for g in groups:
    of = np.arange(len(rows)) if g is None else np.nonzero(found == g)[0]
    kept += [of[k] for k in nms(corner[rows[of]], s[of], ${iouThreshold})]
kept = np.array(sorted(kept, key=lambda k: (-s[k], k)), np.int64)[:${maxOutputs}]
more = ${padded ? maxOutputs : 0} - len(kept)
def full(x, fill):
    return np.concatenate([x, np.full((more,) + x.shape[1:], fill, x.dtype)]) if more > 0 else x
`
  return {
    options: {
      scoreThreshold,
      iouThreshold,
      maxOutputs,
      classAware,
      multiLabel,
      boxFormat,
      padded,
    },
    inputs: kind === 'classes' ? [boxes, scores, classes] : [boxes, scores],
    setup,
    expression:
      '(full(corner[rows][kept], 0), full(s[kept], 0), full(found[kept].astype(np.int64), -1), full(rows[kept].astype(np.int64), -1), np.array([len(kept)], np.int64))',
    tolerance: { absolute: 1e-4 },
  }
}

const CASES: Readonly<Record<string, (dice: Dice, count: number) => NumpyCase>> = {
  convertBoxes: (dice) => {
    const [from, to] = [dice.pick(...FORMATS), dice.pick(...FORMATS)]
    const datatype = dice.pick('FP32', 'FP64', 'FP16')
    const boxes = dice.tensor('boxes', datatype, [...dice.shape(0, 2, 0), 4], {
      least: 0,
      most: 100,
    })
    return {
      options: { from, to },
      inputs: [boxes],
      setup: SETUP,
      expression: `convert(boxes, '${from}', '${to}')`,
      tolerance: datatype === 'FP16' ? { absolute: 0.2 } : { relative: 1e-6, absolute: 1e-5 },
    }
  },
  scaleBoxes: (dice) => {
    const last = dice.pick(2, 4)
    const datatype = dice.pick('FP32', 'FP64', 'FP16')
    const shape = [...dice.shape(0, 2, 0), last]
    const boxes = dice.tensor('boxes', datatype, shape, { least: -50, most: 500 })
    const scale = dice.tensor('scale', 'FP32', [dice.int(1, 2)], { least: 0.3, most: 3 })
    const pad = dice.tensor('pad', 'FP32', [dice.int(1, 2)], { least: 0, most: 90 })
    const size = dice.tensor('size', dice.pick('INT64', 'INT32'), [2], { least: 1, most: 300 })
    const [hasPad, hasSize] = [dice.isTrue(), dice.isTrue()]
    const wide = datatype === 'FP64' ? 'np.float64' : 'np.float32'
    const setup = `
b = boxes.astype(${wide}).reshape(boxes.shape[:-1] + (${last / 2}, 2))
if ${python(hasPad)}: b = b - pad.astype(${wide})
b = b / scale.astype(${wide})
if ${python(hasSize)}: b = np.clip(b, 0, size[::-1].astype(${wide}))`
    return {
      inputs: [boxes, scale, ...(hasPad ? [pad] : []), ...(hasSize ? [size] : [])],
      setup: hasPad ? setup : setup.replace(/^if .*pad.*\n/m, ''),
      expression: 'b.reshape(boxes.shape).astype(boxes.dtype)',
    }
  },
  nms: nmsCase,
  rotatedNms: (dice) => {
    const count = dice.pick(0, 1, 5, 40)
    const rows = Array.from({ length: count }, () => [
      dice.float(0, 90),
      dice.float(0, 90),
      dice.float(4, 50),
      dice.float(4, 25),
      dice.pick(0, Math.PI / 2, dice.float(-4, 4)),
    ])
    const boxes = numberTensor('boxes', 'FP32', [count, 5], rows.flat())
    const scores = dice.tensor('scores', 'FP32', [count], { least: 0, most: 1 })
    const maxOutputs = dice.pick(1, 3, 300)
    const [scoreThreshold, iouThreshold] = [dice.pick(0, 0.25, 0.6), dice.pick(0.1, 0.2, 0.45, 0.9)]
    const setup = `
rects = [((x, y), (w, h), np.degrees(a)) for x, y, w, h, a in boxes.astype(float)]
kept = cv2.dnn.NMSBoxesRotated(rects, scores.tolist(), ${scoreThreshold}, ${iouThreshold}) if rects else []
kept = np.array(kept, np.int64).reshape(-1)[:${maxOutputs}]
x, y, w, h, a = boxes[kept].astype(float).T
u, v = np.array([[-.5, .5, .5, -.5], [-.5, -.5, .5, .5]])
c, s = np.cos(a)[:, None], np.sin(a)[:, None]
u, v = u * w[:, None], v * h[:, None]
corners = np.stack([x[:, None] + u * c - v * s, y[:, None] + u * s + v * c], 2)`
    return {
      options: { scoreThreshold, iouThreshold, maxOutputs },
      inputs: [boxes, scores],
      setup,
      expression: '(corners.astype(np.float32).reshape(-1, 4, 2), scores[kept], kept)',
      tolerance: { absolute: 1e-3 },
    }
  },
  cropBoxes: (dice) => {
    const datatype = dice.pick('UINT8', 'UINT16', 'FP16', 'FP32')
    const shape = [dice.int(1, 60), dice.int(1, 60), dice.pick(1, 3)]
    const image = dice.tensor('image', datatype, shape, { least: 0, most: 255 })
    const count = dice.pick(0, 1, 5)
    const values = corners(dice, count).flatMap((box) => box.map((value) => value - 10))
    const boxes = numberTensor('boxes', dice.pick('FP32', 'INT64'), [count, 4], values)
    const [width, height] = [dice.int(1, 40), dice.int(1, 40)]
    const fit = dice.pick('stretch', 'pad')
    const padTo = fit === 'pad' ? dice.pick(undefined, 'width', 'widest') : undefined
    const minWidth = padTo === 'widest' ? dice.pick(undefined, dice.int(1, width)) : undefined
    const fill = fit === 'pad' ? dice.pick(undefined, 7) : undefined
    const setup = `${SETUP}
crops = [crop(image, box, ${fit === 'pad' ? -width : width}, ${height}) for box in boxes]
widths = [c.shape[1] for c in crops]
full = ${padTo === 'widest' ? `max(widths + [${minWidth ?? 1}])` : width}
crops = [np.pad(c, [(0, 0), (0, full - c.shape[1]), (0, 0)], constant_values=${fill ?? 0}) for c in crops]
stack = np.stack(crops) if crops else np.zeros((0, ${height}, full, image.shape[2]), image.dtype)`
    const tolerances = { UINT8: 1, UINT16: 1, FP16: 0.2, FP32: 0.02 }
    return {
      options: { width, height, fit, padTo, minWidth, fill },
      inputs: [image, boxes],
      setup,
      expression: '(stack, np.array(widths, np.int64).reshape(-1))',
      tolerance: { absolute: tolerances[datatype] },
    }
  },
}

await t.test(
  'built-ins for boxes are equal to NumPy and OpenCV',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const run = await openBuiltins(t)
    const numpy = startNumpy(t, TEST_PYTHON ?? '')
    for (const [name, draw] of Object.entries(CASES)) {
      await t.test(name, (t) => compareWithNumpy(t, { run, numpy }, name, draw, 25))
    }
  },
)

await t.test('of equal scores the first box comes first, and is kept', async (t) => {
  const run = await openBuiltins(t)
  const boxes = numberTensor('boxes', 'FP32', [3, 4], [0, 0, 9, 9, 1, 0, 9, 9, 50, 50, 60, 60])
  const scores = numberTensor('scores', 'FP32', [3], [0.5, 0.5, 0.5])
  const classes = numberTensor('classes', 'INT64', [3], [7, 7, -2])
  const table = numberTensor('scores', 'FP32', [3, 2], [0, 0.5, 0, 0.5, 0.5, 0])
  for (const [options, inputs] of [
    [{}, [boxes, scores]],
    [{}, [boxes, scores, classes]],
    [{ scoreThreshold: -3.402823e38 }, [boxes, scores, classes]],
    [{}, [boxes, table]],
    [{ multiLabel: true }, [boxes, table]],
  ] as const) {
    const outputs = await run(t, { name: 'nms', ...options }, inputs)
    const indices = outputs.find(({ name }) => name === 'indices')
    t.same(indices && numbersOf(indices), [0, 2], JSON.stringify(options))
  }
})

await t.test('scores for more classes than there is memory for are refused', async (t) => {
  const run = await openBuiltins(t)
  const count = 20_000
  const none = (name: string, shape: readonly number[]): NamedTensor =>
    numberTensor(
      name,
      'FP32',
      shape,
      Array.from({ length: count * (shape[1] ?? 1) }, () => 0),
    )
  const classes = numberTensor(
    'classes',
    'INT32',
    [count],
    Array.from({ length: count }, (_, i) => i),
  )
  const inputs = [none('boxes', [count, 4]), none('scores', [count]), classes]
  await t.rejects(run(t, { name: 'nms' }, inputs), {
    reason: 'INVALID_REQUEST',
    message: 'input "classes": more than 3355 classes of 20000 boxes, want fewer',
  })
  const [boxes] = await run(t, { name: 'nms', classAware: false }, inputs)
  t.same(boxes?.shape, [0, 4], 'all boxes are of one class then')
  await t.rejects(
    run(t, { name: 'nms' }, [none('boxes', [count, 4]), none('scores', [count, 0])]),
    {
      message: /"inputs.scores","got":"dims \[20000,0\]","want":"at least one class"/,
    },
  )
})

await t.test('inputs that no dims can tell are errors of the request', async (t) => {
  const run = await openBuiltins(t)
  const image: NamedTensor = numberTensor('image', 'FP32', [1, 2, 1], [1, 2])
  const boxes = numberTensor(
    'boxes',
    'FP32',
    [3, 4],
    Array.from({ length: 12 }, () => 1),
  )
  const crop = { name: 'cropBoxes', width: 2, height: 2, maxBoxes: 2 }
  const open = { image: [-1, -1, -1], boxes: [-1, 4] }
  await t.rejects(run(t, crop, [image, boxes], open), {
    reason: 'SHAPE_MISMATCH',
    message: 'built-in cropBoxes, inputs.boxes: got dims [3,4], want at most 2 boxes (maxBoxes)',
  })
  const center = { name: 'centerCrop', width: 2, height: 2 }
  await t.rejects(run(t, center, [image], open), {
    message: 'built-in centerCrop, height: got 2, want at most 1, as the input has',
  })
  const large = { name: 'cropBoxes', width: 16_384, height: 16_384 }
  await t.rejects(
    run(t, large, [image, boxes], open),
    /its outputs would have \d+ bytes, want at most/,
  )
  const widest = { name: 'cropBoxes', width: 16_384, height: 16_384, fit: 'pad', padTo: 'widest' }
  await t.rejects(
    run(
      t,
      widest,
      [
        image,
        numberTensor(
          'boxes',
          'FP32',
          [8, 4],
          Array.from({ length: 32 }, () => 1),
        ),
      ],
      open,
    ),
    {
      reason: 'MESSAGE_TOO_LARGE',
      message:
        'built-in cropBoxes: its outputs would have 8589934656 bytes, want at most 1073741824',
    },
  )
  const none: NamedTensor = numberTensor('image', 'FP32', [0, 2, 1], [])
  await t.rejects(run(t, crop, [none, numberTensor('boxes', 'FP32', [1, 4], [0, 0, 1, 1])]), {
    message: 'input "image": no pixels, want some',
  })
})

await t.test('a box of no numbers, or without area, is the nearest pixel', async (t) => {
  const run = await openBuiltins(t)
  const image = numberTensor('image', 'FP32', [2, 2, 1], [1, 2, 3, 4])
  const given = { name: 'cropBoxes', width: 1, height: 1 }
  const boxes = [
    [NaN, NaN, NaN, NaN],
    [Infinity, -Infinity, Infinity, Infinity],
    [1, 1, 0, 0],
    [-9, -9, -8, -8],
  ]
  const [crops] = await run(t, given, [image, numberTensor('boxes', 'FP32', [4, 4], boxes.flat())])
  t.same(crops && numbersOf(crops), [1, 3, 4, 1])
})
