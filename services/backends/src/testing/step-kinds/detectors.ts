import type { NamedTensor } from '@tutti/tensor'
import { MAPS_OF_A_DETECTOR } from './detector-maps.ts'
import { bytesTensor, type StepKind, step } from './step-kind.ts'

/** Boxes in the picture, scores and classes as one table. */
const TABLE = [
  step('classes', 'cast', { input: 'best.classes' }, { datatype: 'FP32' }),
  step('marks', 'stack', { input0: 'best.scores', input1: 'classes.output' }, { axis: 1 }),
  step('table', 'concat', { input0: 'scaled.boxes', input1: 'marks.output' }, { axis: 1 }),
]

const KEEP = { boxFormat: 'cxcywh', scoreThreshold: 0.5 }

export const DETECTOR_KINDS: readonly StepKind[] = [
  MAPS_OF_A_DETECTOR,
  {
    rows: [11],
    takes: 'FP32[3,640,640]',
    makes: 'FP32[37,-1], FP32[32,-1,-1], FP32[3,224,224]',
    does: 'calls a network that outlines objects, keeps the best boxes, and cuts the best one out',
    expressed: {
      cases: 1,
      networks: ['head', 'masks'],
      steps: [
        step('rows', 'transpose', { input: 'head' }),
        step('parts', 'split', { input: 'rows.output' }, { sizes: [4, 1, 32] }),
        step('scores', 'squeeze', { input: 'parts.output1' }, { axis: 1 }),
        step(
          'best',
          'nms',
          { boxes: 'parts.output0', scores: 'scores.output' },
          { ...KEEP, maxOutputs: 10 },
        ),
        step('kept', 'take', { input: 'rows.output', indices: 'best.indices' }),
        step('columns', 'transpose', { input: 'kept.output' }),
        step(
          'first',
          'nms',
          { boxes: 'parts.output0', scores: 'scores.output' },
          {
            ...KEEP,
            maxOutputs: 1,
            padded: true,
          },
        ),
        step('image', 'transpose', { input: 'picture' }, { axes: [1, 2, 0] }),
        step(
          'crops',
          'cropBoxes',
          { image: 'image.output', boxes: 'first.boxes' },
          { width: 224, height: 224 },
        ),
        step('crop', 'squeeze', { input: 'crops.crops' }),
        step('planes', 'transpose', { input: 'crop.output' }, { axes: [2, 0, 1] }),
        step('same', 'slice', { input: 'masks' }, { index: '...' }),
      ],
      outputs: ['columns.output', 'same.output', 'planes.output'],
      draw: ({ dice }) => [
        dice.tensor('picture', 'FP32', [3, 640, 640], { least: 0, most: 1 }),
        dice.tensor('head', 'FP32', [37, dice.pick(1, 90)], { least: 0, most: 0.9 }),
        dice.tensor('masks', 'FP32', [32, 8, 8]),
      ],
      python: `
rows = head.T
boxes = corners(rows[:, :4])
kept = best_of_classes(boxes, rows[:, 4:5], 0.5)[:10]
box = boxes[kept[0]] if kept else np.zeros(4, np.float32)
x1, y1, x2, y2 = box.astype(int)
x1, y1 = max(x1, 0), max(y1, 0)
crop = cv2.resize(picture.transpose(1, 2, 0)[y1:max(y2, y1 + 1), x1:max(x2, x1 + 1)], (224, 224))
out = (rows[kept].T, masks, crop.transpose(2, 0, 1))`,
      tolerance: { absolute: 1e-4 },
    },
  },
  {
    rows: [36],
    takes: 'FP32[-1,-1,-1], FP32[1,3,1280,1280], STRING[1], FP32[2]',
    makes: 'FP32[1,3,-1,-1], FP32[-1,3,32,128], FP32[1,-1,4], FP32[1]',
    does: 'boxes of a detector in the picture of a file, its crops for a reader, and the picture for the next network',
    expressed: {
      cases: 1,
      steps: [
        step('first', 'squeeze', { input: 'head' }),
        step('parts', 'split', { input: 'first.output' }, { sizes: [4, 1, 1] }),
        step(
          'product',
          'arithmetic',
          { input: 'parts.output1', other: 'parts.output2' },
          { op: 'multiply' },
        ),
        step('scores', 'squeeze', { input: 'product.output' }, { axis: 1 }),
        step(
          'best',
          'nms',
          { boxes: 'parts.output0', scores: 'scores.output' },
          { ...KEEP, scoreThreshold: 0.3 },
        ),
        step('decoded', 'imageDecode', { data: 'file' }),
        step('scaled', 'scaleBoxes', { boxes: 'best.boxes', scale: 'scale', size: 'decoded.size' }),
        step(
          'crops',
          'cropBoxes',
          { image: 'decoded.image', boxes: 'scaled.boxes' },
          { width: 128, height: 32 },
        ),
        step(
          'ready',
          'normalise',
          { image: 'crops.crops' },
          {
            scale: 1 / 255,
            mean: [0.5],
            std: [0.5],
            layout: 'CHW',
          },
        ),
        step('pixels', 'transpose', { input: 'image' }, { axes: [0, 2, 3, 1] }),
        step('small', 'resize', { image: 'pixels.output' }, { width: 320, height: 320 }),
        step('next', 'transpose', { input: 'small.image' }, { axes: [0, 3, 1, 2] }),
        step('boxes', 'expandDims', { input: 'scaled.boxes' }),
        step('count', 'cast', { input: 'best.count' }, { datatype: 'FP32' }),
      ],
      outputs: ['next.output', 'ready.image', 'boxes.output', 'count.output'],
      draw: async ({ dice, picture }) => [
        dice.tensor('head', 'FP32', [1, 50, 6], { least: 0, most: 0.95 }),
        dice.tensor('image', 'FP32', [1, 3, 1280, 1280], { least: 0, most: 1 }),
        bytesTensor('file', [1], [await picture(90, 120)]),
        dice.tensor('scale', 'FP32', [2], { least: 0.01, most: 0.02 }),
      ],
      python: `
rows = head[0]
boxes = corners(rows[:, :4])
kept = best_of_classes(boxes, rows[:, 4:5] * rows[:, 5:], 0.3)
picture = np.asarray(open_rgb(file[0]))
scaled = np.clip(boxes[kept] / np.tile(scale, 2), 0, [120, 90] * 2).astype(np.float32)
crops = [cut(picture, box, 128, 32) for box in scaled]
ready = (np.stack(crops).astype(np.float32) / 255 - 0.5) / 0.5 if crops else np.zeros((0, 32, 128, 3), np.float32)
small = cv2.resize(image[0].transpose(1, 2, 0), (320, 320))
out = (small.transpose(2, 0, 1)[None], ready.transpose(0, 3, 1, 2), scaled[None], np.array([len(kept)], np.float32))`,
      tolerance: { absolute: 0.008 },
    },
  },
  {
    rows: [38],
    takes: 'FP32[-1,4], FP32[1], STRING[1]',
    makes: 'FP32[-1,3,480,480], FP32[-1], FP32[-1], FP32[-1], FP32[-1]',
    does: 'a crop of a file for each box, fitted into a square, with its factor, border and left edge',
    expressed: {
      steps: [
        step('decoded', 'imageDecode', { data: 'file' }),
        step('scaled', 'scaleBoxes', { boxes: 'boxes', scale: 'scale', size: 'decoded.size' }),
        {
          name: 'each',
          inputMap: { image: 'decoded.image' },
          forEach: {
            items: { box: 'scaled.boxes' },
            inputs: { box: 'FP32[4]', image: 'UINT8[-1,-1,3]' },
            steps: [
              step('crop', 'crop', { image: 'image', box: 'box' }),
              step('fitted', 'letterbox', { image: 'crop.image' }, { width: 480, height: 480 }),
              step(
                'ready',
                'normalise',
                { image: 'fitted.image' },
                { scale: 1 / 255, layout: 'CHW' },
              ),
            ],
            outputs: { crop: 'ready.image', scale: 'fitted.scale', pad: 'fitted.pad' },
          },
        },
        step('factor', 'slice', { input: 'each.scale' }, { index: ':, 0' }),
        step('across', 'slice', { input: 'each.pad' }, { index: ':, 0' }),
        step('down', 'slice', { input: 'each.pad' }, { index: ':, 1' }),
        step('left', 'slice', { input: 'scaled.boxes' }, { index: ':, 0' }),
      ],
      outputs: ['each.crop', 'factor.output', 'across.output', 'down.output', 'left.output'],
      draw: async ({ dice, picture }) => {
        const rows = Array.from({ length: 3 }, () => {
          const [x, y] = [dice.int(0, 60), dice.int(0, 50)]
          return [x, y, x + dice.int(9, 90), y + dice.int(9, 90)]
        })
        const data = new Uint8Array(Float32Array.from(rows.flat()).buffer)
        return [
          { name: 'boxes', datatype: 'FP32', shape: [3, 4], data },
          dice.tensor('scale', 'FP32', [1], { least: 0.9, most: 1.1 }),
          bytesTensor('file', [1], [await picture(110, 130)]),
        ]
      },
      python: `
picture = np.asarray(open_rgb(file[0]))
scaled = np.clip(boxes / scale, 0, [130, 110] * 2).astype(np.float32)
fitted = [letterbox(picture[y1:y2, x1:x2], 480) for x1, y1, x2, y2 in scaled.astype(int)]
images, factors, pads = zip(*fitted)
pads = np.array(pads, np.float32)
out = (np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / 255, np.array(factors, np.float32), pads[:, 0], pads[:, 1], scaled[:, 0])`,
      tolerance: { absolute: 0.004 },
    },
  },
  {
    rows: [50],
    takes: 'FP32[84,8400], FP32[1], FP32[2], INT32[2]',
    makes: 'FP32[-1,-1,6]',
    does: 'boxes, scores and classes of a detector in the pixels of the picture that was fitted',
    expressed: {
      steps: [
        step('rows', 'transpose', { input: 'head' }),
        step('parts', 'split', { input: 'rows.output' }, { sizes: [4, 80] }),
        step('best', 'nms', { boxes: 'parts.output0', scores: 'parts.output1' }, KEEP),
        step('scaled', 'scaleBoxes', {
          boxes: 'best.boxes',
          scale: 'scale',
          pad: 'pad',
          size: 'size',
        }),
        ...TABLE,
        step('batch', 'expandDims', { input: 'table.output' }),
      ],
      outputs: ['batch.output'],
      draw: ({ dice }) => [
        join(
          dice.tensor('head', 'FP32', [4, 8400], { least: 0, most: 640 }),
          // Few of the scores are above one half.
          dice.tensor('scores', 'FP32', [80, 8400], { least: -99, most: 0.6 }),
        ),
        dice.tensor('scale', 'FP32', [1], { least: 0.5, most: 2 }),
        dice.tensor('pad', 'FP32', [2], { least: 0, most: 9 }),
        dice.tensor('size', 'INT32', [2], { least: 1, most: 900 }),
      ],
      python: `
rows = head.T
boxes = corners(rows[:, :4])
kept = best_of_classes(boxes, rows[:, 4:], 0.5)
out = (table(boxes, rows[:, 4:], kept, scale, pad, size)[None],)`,
      tolerance: { absolute: 1e-3 },
    },
  },
  {
    rows: [55],
    takes: 'FP32[-1,-1,-1], INT32[-1]',
    makes: 'FP32[-1]',
    does: 'boxes, scores and classes of a detector in the pixels of a picture of that size, as one list',
    expressed: {
      steps: [
        step('first', 'squeeze', { input: 'head' }),
        step('rows', 'transpose', { input: 'first.output' }),
        step('parts', 'split', { input: 'rows.output' }, { sizes: [4, 3] }),
        step('best', 'nms', { boxes: 'parts.output0', scores: 'parts.output1' }, KEEP),
        step('sides', 'cast', { input: 'size' }, { datatype: 'FP32' }),
        step(
          'factors',
          'arithmetic',
          { other: 'sides.output' },
          { op: 'divide' },
          {
            input: { datatype: 'FP32', value: [640] },
          },
        ),
        step('factor', 'reduce', { input: 'factors.output' }, { op: 'min' }),
        step('scaled', 'scaleBoxes', { boxes: 'best.boxes', scale: 'factor.output', size: 'size' }),
        ...TABLE,
        step('list', 'reshape', { input: 'table.output' }, { shape: [-1] }),
      ],
      outputs: ['list.output'],
      draw: ({ dice }) => [
        dice.tensor('head', 'FP32', [1, 7, 60], { least: 0, most: 0.8 }),
        dice.tensor('size', 'INT32', [2], { least: 100, most: 900 }),
      ],
      python: `
rows = head[0].T
boxes = corners(rows[:, :4])
kept = best_of_classes(boxes, rows[:, 4:], 0.5)
scale = np.array([min(640 / size)], np.float32)
out = (table(boxes, rows[:, 4:], kept, scale, np.zeros(2, np.float32), size).reshape(-1),)`,
      tolerance: { absolute: 1e-3 },
    },
  },
]

/** Puts the rows of one tensor behind those of another. */
function join(first: NamedTensor, second: NamedTensor): NamedTensor {
  const [rows = 0, ...rest] = first.shape
  const data = new Uint8Array(Buffer.concat([first.data, second.data]))
  return { ...first, shape: [rows + (second.shape[0] ?? 0), ...rest], data }
}
