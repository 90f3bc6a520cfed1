import type { NamedTensor } from '@tutti/tensor'
import { bytesTensor, type ChainStep, type Draw, type StepKind, step } from './step-kind.ts'

/** Values of ImageNet, and of the same as Python writes them. */
const IMAGENET = { scale: 1 / 255, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] }
const UNIT = { scale: 1 / 255 }
const SIDES = { least: 40, most: 300 }

const file = (data: Uint8Array): NamedTensor => {
  return { name: 'file', datatype: 'UINT8', shape: [data.byteLength], data }
}
const drawFile = async ({ dice, picture }: Draw): Promise<readonly NamedTensor[]> => {
  const { least, most } = SIDES
  return [
    file(await picture(dice.int(least, most), dice.int(least, most), dice.pick('jpeg', 'png'))),
  ]
}
const drawImage = ({ dice }: Draw): readonly NamedTensor[] => [
  dice.tensor('image', 'UINT8', [dice.int(20, 300), dice.int(20, 300), 3]),
]

/** One value of UINT8 beside the reference's, through the standard deviation. */
const ONE_STEP = { absolute: 0.0179 }

const decode = (data: string): ChainStep => step('decoded', 'imageDecode', { data })
const ready = (image: string, options: object): ChainStep =>
  step('ready', 'normalise', { image }, { ...options })

export const PICTURE_KINDS: readonly StepKind[] = [
  {
    rows: [13, 14, 16, 17],
    takes: 'UINT8[-1]',
    makes: 'FP32[3,224,224]',
    does: 'a file as the input of a classifier: scaled, the middle, normalised, channels first',
    expressed: {
      steps: [
        decode('file'),
        step('small', 'resize', { image: 'decoded.image' }, { shortSide: 256, antialias: true }),
        step('middle', 'centerCrop', { image: 'small.image' }, { width: 224, height: 224 }),
        ready('middle.image', { ...IMAGENET, layout: 'CHW' }),
      ],
      outputs: ['ready.image'],
      draw: drawFile,
      python: `
picture = open_rgb(file)
short = min(picture.size)
picture = pil_resize(picture, [int(256 * side / short) for side in picture.size])
left, top = (round((side - 224) / 2) for side in picture.size)
middle = np.asarray(picture)[top:top + 224, left:left + 224]
out = (imagenet(middle).transpose(2, 0, 1),)`,
      tolerance: ONE_STEP,
    },
  },
  {
    rows: [15],
    takes: 'STRING[1]',
    makes: 'FP32[224,224,3]',
    does: 'a file in base64 as the input of a classifier, channels last',
    expressed: {
      steps: [
        step('bytes', 'base64', { data: 'text' }, { direction: 'decode' }),
        decode('bytes.data'),
        step(
          'small',
          'resize',
          { image: 'decoded.image' },
          { width: 224, height: 224, antialias: true },
        ),
        ready('small.image', IMAGENET),
      ],
      outputs: ['ready.image'],
      draw: async (draw) => {
        const [data] = await drawFile(draw)
        return [bytesTensor('text', [1], [Buffer.from(data?.data ?? []).toString('base64')])]
      },
      python: `
import base64
picture = pil_resize(open_rgb(base64.b64decode(text[0])), [224, 224])
out = (imagenet(np.asarray(picture)),)`,
      tolerance: ONE_STEP,
    },
  },
  {
    rows: [19],
    takes: 'STRING[-1]',
    makes: 'FP32[-1,3,-1,-1]',
    does: 'files as one batch of pictures of one size',
    expressed: {
      steps: [
        step('column', 'expandDims', { input: 'files' }, { axis: 1 }),
        {
          name: 'each',
          inputMap: {},
          forEach: {
            items: { file: 'column.output' },
            inputs: { file: 'STRING[1]' },
            steps: [
              decode('file'),
              step('small', 'resize', { image: 'decoded.image' }, { width: 64, height: 48 }),
              ready('small.image', { ...UNIT, layout: 'CHW' }),
            ],
            outputs: { image: 'ready.image' },
          },
        },
      ],
      outputs: ['each.image'],
      draw: async (draw) => {
        const all = [await drawFile(draw), await drawFile(draw), await drawFile(draw)]
        return [
          bytesTensor(
            'files',
            [3],
            all.map(([one]) => one?.data ?? new Uint8Array()),
          ),
        ]
      },
      python: `
small = [cv2.resize(np.asarray(open_rgb(one)), (64, 48)) for one in files]
out = (np.stack(small).transpose(0, 3, 1, 2).astype(np.float32) / 255,)`,
      tolerance: { absolute: 0.004 },
    },
  },
  {
    rows: [21],
    takes: 'FP32[3,224,224]',
    makes: 'FP32[3,224,224]',
    does: 'normalises a picture whose channels are first',
    expressed: {
      steps: [ready('image', { ...IMAGENET, inputLayout: 'CHW' })],
      outputs: ['ready.image'],
      draw: ({ dice }) => [dice.tensor('image', 'FP32', [3, 224, 224], { least: 0, most: 255 })],
      python: 'out = (imagenet(image.transpose(1, 2, 0)).transpose(2, 0, 1),)',
      tolerance: { absolute: 1e-5 },
    },
  },
  {
    rows: [26],
    takes: 'FP32[-1,-1,-1], UINT8[-1,-1,-1], FP32[4]',
    makes: 'FP32[-1,-1,-1], FP32[-1,-1,-1]',
    does: "a box of a network's picture, and the same box of the input, from 0 to 1",
    isReading: true,
    expressed: {
      steps: [
        step('made', 'crop', { image: 'output', box: 'box' }),
        step('own', 'crop', { image: 'image', box: 'box' }),
        ready('own.image', UNIT),
      ],
      outputs: ['made.image', 'ready.image'],
      draw: ({ dice }) => {
        const [height, width] = [dice.int(9, 60), dice.int(9, 60)]
        const [left, top] = [dice.int(0, width - 1), dice.int(0, height - 1)]
        const corner = dice.tensor('box', 'FP32', [2], { least: 0, most: 1 })
        const [x, y] = new Float32Array(corner.data.slice().buffer)
        const box = [left, top, left + (x ?? 0) * (width - left), top + (y ?? 0) * (height - top)]
        return [
          dice.tensor('output', 'FP32', [height, width, 3]),
          dice.tensor('image', 'UINT8', [height, width, 3]),
          { ...corner, shape: [4], data: new Uint8Array(Float32Array.from(box).buffer) },
        ]
      },
      python: `
x1, y1, x2, y2 = box.astype(int)
out = (output[y1:y2, x1:x2], image[y1:y2, x1:x2].astype(np.float32) * np.float32(1 / 255))`,
    },
  },
  {
    rows: [27],
    takes: 'UINT8[-1,-1,3]',
    makes: 'FP32[-1,-1,3], FP32[4]',
    does: 'a picture from 0 to 1 with sides of a multiple of 32, and the box in which it is',
    isReading: true,
    expressed: {
      steps: [
        step('full', 'padToMultiple', { image: 'image' }, { multipleOf: 32, mode: 'edge' }),
        ready('full.image', UNIT),
      ],
      outputs: ['ready.image', 'full.box'],
      draw: drawImage,
      python: `
h, w = image.shape[:2]
full = np.pad(image, ((0, -h % 32), (0, -w % 32), (0, 0)), 'edge')
out = (full.astype(np.float32) * np.float32(1 / 255), np.array([0, 0, w, h], np.float32))`,
    },
  },
  {
    rows: [30],
    takes: 'FP16[1,-1,-1,3]',
    makes: 'FP16[1,3,-1,-1]',
    does: 'subtracts the mean of each channel and puts channels first, in FP16',
    expressed: {
      steps: [ready('image', { mean: [104, 117, 123], layout: 'CHW', datatype: 'FP16' })],
      outputs: ['ready.image'],
      draw: ({ dice }) => [
        dice.tensor('image', 'FP16', [1, dice.int(1, 40), dice.int(1, 40), 3], {
          least: 0,
          most: 255,
        }),
      ],
      python:
        'out = ((image.astype(np.float32) - np.array([104, 117, 123], np.float32)).transpose(0, 3, 1, 2).astype(np.float16),)',
    },
  },
  {
    rows: [40],
    takes: 'STRING[1]',
    makes: 'FP32[1,3,1280,1280], FP32[2], UINT8[3,1000,1000], FP32[2], FP32[1]',
    does: 'a file at the sizes of two networks, both factors, and its aspect ratio',
    expressed: {
      cases: 1,
      steps: [
        decode('file'),
        step('large', 'resize', { image: 'decoded.image' }, { width: 1280, height: 1280 }),
        ready('large.image', { ...UNIT, layout: 'CHW' }),
        step('batch', 'expandDims', { input: 'ready.image' }),
        step('other', 'resize', { image: 'decoded.image' }, { width: 1000, height: 1000 }),
        step('planes', 'transpose', { input: 'other.image' }, { axes: [2, 0, 1] }),
        step('sides', 'cast', { input: 'decoded.size' }, { datatype: 'FP32' }),
        step('height', 'slice', { input: 'sides.output' }, { index: ':1' }),
        step('width', 'slice', { input: 'sides.output' }, { index: '1:' }),
        step(
          'ratio',
          'arithmetic',
          { input: 'width.output', other: 'height.output' },
          { op: 'divide' },
        ),
      ],
      outputs: ['batch.output', 'large.scale', 'planes.output', 'other.scale', 'ratio.output'],
      draw: async (draw) => {
        const [data] = await drawFile(draw)
        return [bytesTensor('file', [1], [data?.data ?? new Uint8Array()])]
      },
      python: `
picture = np.asarray(open_rgb(file[0]))
h, w = picture.shape[:2]
large, other = (cv2.resize(picture, (side, side)) for side in (1280, 1000))
out = (
    large.transpose(2, 0, 1)[None].astype(np.float32) / 255, np.array([1280 / w, 1280 / h], np.float32),
    other.transpose(2, 0, 1), np.array([1000 / w, 1000 / h], np.float32), np.array([w / h], np.float32),
)`,
      tolerance: { absolute: 1.0001 },
    },
  },
  {
    rows: [45],
    takes: 'UINT8[-1]',
    makes: 'FP32[-1,-1,3]',
    does: 'a file with sides of a multiple of 32, less the mean of each channel',
    expressed: {
      steps: [
        decode('file'),
        step('near', 'resize', { image: 'decoded.image' }, { longSide: 320, multipleOf: 32 }),
        ready('near.image', { mean: [123.68, 116.78, 103.94] }),
      ],
      outputs: ['ready.image'],
      draw: drawFile,
      python: `
picture = np.asarray(open_rgb(file))
sides = [int(side * 320 / max(picture.shape[:2])) for side in picture.shape[1::-1]]
near = cv2.resize(picture, [max(1, round(side / 32)) * 32 for side in sides])
out = (near.astype(np.float32) - np.array([123.68, 116.78, 103.94], np.float32),)`,
      tolerance: { absolute: 1.0001 },
    },
  },
  {
    rows: [51],
    takes: 'UINT8[-1,-1,-1]',
    makes: 'FP32[3,640,640], FP32[1], FP32[2], INT32[2]',
    does: 'a picture fitted into the square of a detector, the factor, the border and the size',
    expressed: {
      steps: [
        step('fitted', 'letterbox', { image: 'image' }, { width: 640, height: 640 }),
        ready('fitted.image', { ...UNIT, layout: 'CHW' }),
        step('factor', 'slice', { input: 'fitted.scale' }, { index: ':1' }),
        step('size', 'cast', { input: 'fitted.size' }, { datatype: 'INT32' }),
      ],
      outputs: ['ready.image', 'factor.output', 'fitted.pad', 'size.output'],
      draw: drawImage,
      python: `
fitted, r, pad = letterbox(image, 640)
out = (fitted.transpose(2, 0, 1).astype(np.float32) / 255, np.array([r], np.float32), np.array(pad, np.float32), np.array(image.shape[:2], np.int32))`,
      tolerance: { absolute: 0.004 },
    },
  },
  {
    rows: [56],
    takes: 'UINT8[-1,-1,-1]',
    makes: 'FP32[-1,-1,-1,-1]',
    does: 'a picture fitted into the square of a detector, as a batch of one',
    expressed: {
      steps: [
        step('fitted', 'letterbox', { image: 'image' }, { width: 320, height: 320 }),
        ready('fitted.image', { ...UNIT, layout: 'CHW' }),
        step('batch', 'expandDims', { input: 'ready.image' }),
      ],
      outputs: ['batch.output'],
      draw: drawImage,
      python: `
fitted, _, _ = letterbox(image, 320)
out = (fitted.transpose(2, 0, 1)[None].astype(np.float32) / 255,)`,
      tolerance: { absolute: 0.004 },
    },
  },
  {
    rows: [58],
    takes: 'UINT8[-1,-1]',
    makes: 'FP32[-1,-1,-1,3]',
    does: 'files, padded with zeros to one length, as one batch: scaled, the middle, from 0 to 1',
    expressed: {
      steps: [
        {
          name: 'each',
          inputMap: {},
          forEach: {
            items: { file: 'files' },
            inputs: { file: 'UINT8[-1]' },
            steps: [
              decode('file'),
              step('small', 'resize', { image: 'decoded.image' }, { shortSide: 72 }),
              step('middle', 'centerCrop', { image: 'small.image' }, { width: 64, height: 64 }),
              ready('middle.image', UNIT),
            ],
            outputs: { image: 'ready.image' },
          },
        },
      ],
      outputs: ['each.image'],
      draw: async (draw) => {
        const all = [...(await drawFile(draw)), ...(await drawFile(draw))]
        const length = Math.max(...all.map(({ data }) => data.byteLength)) + 3
        const data = new Uint8Array(all.length * length)
        all.forEach((one, i) => data.set(one.data, i * length))
        return [{ name: 'files', datatype: 'UINT8', shape: [all.length, length], data }]
      },
      python: `
def read(file):
    picture = np.asarray(open_rgb(file))
    sides = [int(side * 72 / min(picture.shape[:2])) for side in picture.shape[1::-1]]
    left, top = (round((side - 64) / 2) for side in sides)
    return cv2.resize(picture, sides)[top:top + 64, left:left + 64]
out = (np.stack([read(file) for file in files]).astype(np.float32) / 255,)`,
      tolerance: { absolute: 0.004 },
    },
  },
  {
    rows: [65],
    takes: 'UINT8[-1]',
    makes: 'FP32[3,-1,-1]',
    does: 'a file, normalised, channels first',
    expressed: {
      steps: [decode('file'), ready('decoded.image', { ...IMAGENET, layout: 'CHW' })],
      outputs: ['ready.image'],
      draw: drawFile,
      python: 'out = (imagenet(np.asarray(open_rgb(file))).transpose(2, 0, 1),)',
      tolerance: { absolute: 1e-5 },
    },
  },
]
