// needs: python
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { compareWithNumpy, type NumpyCase } from '../testing/compare-with-numpy.ts'
import { type Dice, numpyName, python } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { numberTensor, type Tolerance } from '../testing/random-tensors.ts'

/** A picture, or a stack of some, none of them too. */
const imageShape = (dice: Dice, channels = dice.pick(1, 3, 4)): number[] => {
  const stack = dice.pick([], [], [dice.int(0, 3)], [dice.int(1, 2), dice.int(1, 2)])
  return [...stack, dice.int(1, 24), dice.int(1, 24), channels]
}

/** Functions of Python that the expressions of pictures use. */
const SETUP = `
def each(image, scaled):
    # A picture, or each of a stack.
    flat = image.reshape((-1,) + image.shape[-3:])
    done = [scaled(one) for one in flat]
    if not done: return None
    return np.stack(done).reshape(image.shape[:-3] + done[0].shape)

def cv_resize(one, size, method):
    out = cv2.resize(one.astype(np.float32), size, interpolation=method)
    out = out.reshape(out.shape[:2] + (one.shape[2],))
    if one.dtype.kind != 'u': return out.astype(one.dtype)
    return np.clip(np.rint(out), 0, np.iinfo(one.dtype).max).astype(one.dtype)

def pil_resize(one, size, method):
    if one.dtype == np.uint8:
        # Pillow 13 takes the height first where that is faster, which rounds other values between the two.
        wide = lambda plane: plane.resize((size[0], plane.height), method).resize(size, method)
        planes = [np.asarray(wide(Image.fromarray(one[..., c]))) for c in range(one.shape[2])]
    else:
        planes = [np.asarray(Image.fromarray(one[..., c].astype(np.float32)).resize(size, method)) for c in range(one.shape[2])]
    out = np.stack(planes, -1)
    if one.dtype == np.uint16: out = np.clip(np.rint(out), 0, 65535)
    return out.astype(one.dtype)

def nearest(old, new):
    return np.minimum(np.floor(np.arange(new) * (1 / (new / old))).astype(int), old - 1)

def xy(a, b, dtype): return np.array([a, b], dtype)
`

type Datatyped = 'UINT8' | 'UINT16' | 'FP16' | 'FP32'
const PIXELS: readonly Datatyped[] = ['UINT8', 'UINT16', 'FP16', 'FP32']
const METHODS = [
  { method: 'nearest', antialias: false, python: 'cv_resize(one, size, cv2.INTER_NEAREST)' },
  {
    method: 'nearest',
    antialias: false,
    python: 'one[nearest(one.shape[0], size[1])][:, nearest(one.shape[1], size[0])]',
  },
  { method: 'bilinear', antialias: false, python: 'cv_resize(one, size, cv2.INTER_LINEAR)' },
  { method: 'bicubic', antialias: false, python: 'cv_resize(one, size, cv2.INTER_CUBIC)' },
  { method: 'bilinear', antialias: true, python: 'pil_resize(one, size, Image.BILINEAR)' },
  { method: 'bicubic', antialias: true, python: 'pil_resize(one, size, Image.BICUBIC)' },
  { method: 'area', antialias: false, python: 'cv_resize(one, size, cv2.INTER_AREA)' },
] as const

/** The greatest difference of pixels that were rounded, or of floats. */
const pixelTolerance = (datatype: Datatyped): Tolerance =>
  ({
    UINT8: { absolute: 1 },
    UINT16: { absolute: 130 },
    FP16: { absolute: 0.02, relative: 1e-3 },
    FP32: { absolute: 0.02 },
  })[datatype]

const CASES: Readonly<Record<string, (dice: Dice, count: number) => NumpyCase>> = {
  resize: (dice, count) => {
    const { python: scaled, ...chosen } = METHODS[count % METHODS.length] ?? METHODS[0]
    const [isArea, isNearest] = [chosen.method === 'area', chosen.method === 'nearest']
    const datatype = dice.pick(...PIXELS)
    const shape = imageShape(dice).map((extent) => Math.max(1, extent))
    const image = dice.tensor('image', datatype, shape, {
      least: 0,
      most: datatype === 'UINT16' ? 60_000 : 255,
    })
    const [height = 1, width = 1] = shape.slice(-3)
    const size = {
      width: dice.int(1, isArea ? width : 40),
      height: dice.int(1, isArea ? height : 40),
    }
    return {
      options: { ...size, ...chosen },
      inputs: [image],
      setup: `${SETUP}\nsize = (${size.width}, ${size.height})`,
      expression: `(each(image, lambda one: ${scaled}), xy(${size.width / width}, ${size.height / height}, np.float32), xy(${height}, ${width}, np.int64))`,
      tolerance: isNearest
        ? // At a place between two pixels the last bit decides, in which OpenCV differs from one processor to the next.
          { share: scaled.startsWith('cv') ? 0.15 : 0 }
        : pixelTolerance(datatype),
    }
  },
  'resize, keeping the aspect ratio': (dice) => {
    const side = dice.pick('width', 'height', 'shortSide', 'longSide')
    const shape = imageShape(dice).map((extent) => Math.max(1, extent))
    const image = dice.tensor('image', dice.pick('UINT8', 'FP32'), shape, { least: 0, most: 255 })
    const wanted = dice.int(1, 60)
    const only = dice.pick(undefined, 'shrink', 'enlarge')
    const rounding = dice.pick(undefined, 'floor', 'nearest', 'ceil')
    const multipleOf = dice.pick(undefined, 1, 7, 32)
    const reference = { width: 'W', height: 'H', shortSide: 'min(H, W)', longSide: 'max(H, W)' }
    const round = { floor: 'math.floor', nearest: 'round', ceil: 'math.ceil' }[rounding ?? 'floor']
    const stays = { shrink: `${wanted} >= ref`, enlarge: `${wanted} <= ref` }
    const setup = `${SETUP}
import math
H, W = image.shape[-3:-1]
ref = ${reference[side]}
def scaled(old):
    new = old if ${only === undefined ? 'False' : stays[only]} else max(1, ${round}(old * ${wanted} / ref))
    m = ${multipleOf ?? 0}
    return max(1, round(new / m)) * m if m else new
h, w = scaled(H), scaled(W)
`
    return {
      options: { [side]: wanted, only, rounding, multipleOf },
      inputs: [image],
      setup,
      expression:
        '(each(image, lambda one: cv_resize(one, (w, h), cv2.INTER_LINEAR)), xy(w / W, h / H, np.float32), xy(H, W, np.int64))',
      tolerance: pixelTolerance('UINT8'),
    }
  },
  letterbox: (dice) => {
    const datatype = dice.pick(...PIXELS)
    const shape = imageShape(dice).map((extent) => Math.max(1, extent))
    const image = dice.tensor('image', datatype, shape, {
      least: 0,
      most: datatype === 'UINT16' ? 60_000 : 255,
    })
    const options = {
      width: dice.int(1, 40),
      height: dice.int(1, 40),
      fill: dice.int(0, 255),
      enlarge: dice.isTrue(),
      center: dice.isTrue(),
    }
    const setup = `${SETUP}
H, W = image.shape[-3:-1]
r = min(${options.height} / H, ${options.width} / W)
if not ${python(options.enlarge)}: r = min(r, 1.0)
w, h = max(1, round(W * r)), max(1, round(H * r))
dw, dh = ${options.width} - w, ${options.height} - h
left, top = (max(0, round(dw / 2 - 0.1)), max(0, round(dh / 2 - 0.1))) if ${python(options.center)} else (0, 0)
def boxed(one):
    out = cv_resize(one, (w, h), cv2.INTER_LINEAR)
    return np.pad(out, [(top, dh - top), (left, dw - left), (0, 0)], constant_values=${options.fill})
`
    const expression =
      '(each(image, boxed), xy(r, r, np.float32), xy(left, top, np.float32), xy(H, W, np.int64))'
    return { options, inputs: [image], setup, expression, tolerance: pixelTolerance(datatype) }
  },
  centerCrop: (dice) => {
    const shape = imageShape(dice)
    const [height = 1, width = 1] = shape.slice(-3)
    const options = { width: dice.int(1, width), height: dice.int(1, height) }
    const image = dice.tensor('image', dice.pick(...PIXELS, 'INT64'), shape)
    const setup = `top = round((${height} - ${options.height}) / 2); left = round((${width} - ${options.width}) / 2)`
    const expression = `image[..., top:top + ${options.height}, left:left + ${options.width}, :]`
    return { options, inputs: [image], setup, expression }
  },
  normalise: (dice) => {
    const [inputLayout, layout] = [
      dice.pick(undefined, 'HWC', 'CHW'),
      dice.pick(undefined, 'HWC', 'CHW'),
    ]
    const isFirst = inputLayout === 'CHW'
    const [channels = 1, ...others] = imageShape(dice).toReversed()
    const [width = 1, height = 1, ...stack] = others
    const sides = isFirst ? [channels, height, width] : [height, width, channels]
    const image = dice.tensor('image', dice.pick('UINT8', 'FP32', 'FP16', 'UINT16'), [
      ...stack,
      ...sides,
    ])
    const numbers = dice.isTrue() ? channels : 1
    const mean = Array.from({ length: numbers }, () => dice.float(-0.2, 0.8))
    const std = Array.from({ length: numbers }, () => dice.float(0.1, 1.1))
    const datatype = dice.pick('FP32', 'FP16')
    const scale = dice.pick(1, 1 / 255, 2.5)
    const setup = `f = np.float32
x = np.moveaxis(image, -3, -1) if ${python(isFirst)} else image
y = (x.astype(f) * f(${scale}) - np.array(${python(mean)}, f)) / np.array(${python(std)}, f)`
    const endsFirst = (layout ?? inputLayout) === 'CHW'
    return {
      options: { scale, mean, std, inputLayout, layout, datatype },
      inputs: [image],
      setup,
      expression: `${endsFirst ? 'np.moveaxis(y, -1, -3)' : 'y'}.astype('${numpyName(datatype)}')`,
    }
  },
  rotate: (dice) => {
    const image = dice.tensor('image', dice.pick(...PIXELS, 'INT64', 'BOOL'), imageShape(dice))
    const degrees = dice.pick(90, 180, 270)
    const stack = image.shape.slice(0, -3)
    const kind = dice.pick('none', 'all', degrees === 180 && stack.length > 0 ? 'each' : 'all')
    const turns = dice.tensor('turns', dice.pick('INT32', 'INT64'), kind === 'each' ? stack : [1], {
      least: -4,
      most: 9,
    })
    const setup = `${SETUP}
quarter = lambda one, k: np.rot90(one, int(k) * ${degrees / 90})
if ${python(kind === 'each')}:
    flat = image.reshape((-1,) + image.shape[-3:])
    out = np.stack([quarter(one, k) for one, k in zip(flat, turns.reshape(-1))]).reshape(image.shape) if len(flat) else image
else:
    out = np.rot90(image, int(${kind === 'all' ? 'turns[0]' : '1'}) * ${degrees / 90}, axes=(-3, -2))`
    return {
      options: { degrees },
      inputs: kind === 'none' ? [image] : [image, turns],
      setup: kind === 'none' ? setup.replace(/^if [^]*^else:/m, 'if True:') : setup,
      expression: 'out',
    }
  },
  padToMultiple: (dice) => {
    const shape = imageShape(dice).map((extent) => Math.max(1, extent))
    const image = dice.tensor('image', dice.pick(...PIXELS), shape, { least: 0, most: 255 })
    const mode = dice.pick('constant', 'edge')
    const value = mode === 'constant' ? dice.pick(undefined, 7) : undefined
    const options = { multipleOf: dice.pick(1, 2, 7, 32), center: dice.isTrue(), mode, value }
    const setup = `
H, W = image.shape[-3:-1]
dh, dw = -H % ${options.multipleOf}, -W % ${options.multipleOf}
top, left = (dh // 2, dw // 2) if ${python(options.center)} else (0, 0)
widths = [(0, 0)] * (image.ndim - 3) + [(top, dh - top), (left, dw - left), (0, 0)]`
    const extra = mode === 'constant' ? `, constant_values=${value ?? 0}` : ''
    return {
      options,
      inputs: [image],
      setup,
      expression: `(np.pad(image, widths, '${mode}'${extra}), np.array([left, top, left + W, top + H], np.float32))`,
    }
  },
  crop: (dice) => {
    const image = dice.tensor('image', dice.pick(...PIXELS, 'INT64'), imageShape(dice))
    const box = dice.tensor('box', dice.pick('FP32', 'INT64'), [4], { least: -5, most: 30 })
    const setup = 'x1, y1, x2, y2 = np.maximum(box.astype(np.int64), 0)'
    return { inputs: [image, box], setup, expression: 'image[..., y1:y2, x1:x2, :]' }
  },
}

await t.test(
  'built-ins for pictures are equal to NumPy, OpenCV and PIL',
  {
    skip: WITHOUT_PYTHON,
  },
  async (t) => {
    const run = await openBuiltins(t)
    const numpy = startNumpy(t, TEST_PYTHON ?? '')
    for (const [name, draw] of Object.entries(CASES)) {
      await t.test(name, (t) =>
        compareWithNumpy(t, { run, numpy }, name.replace(/,.*/, ''), draw, 36),
      )
    }
  },
)

await t.test(
  'pictures that take too much memory while they are computed are refused',
  async (t) => {
    const run = await openBuiltins(t)
    const row = {
      ...numberTensor('image', 'UINT8', [1, 6000, 3], []),
      data: new Uint8Array(18_000),
    }
    const open = { image: [-1, -1, -1] }
    for (const [options, bytes] of [
      [{ shortSide: 224 }, 3_612_672_000],
      [{ shortSide: 224, method: 'area' }, 7_225_344_000],
      [{ shortSide: 224, method: 'bicubic' }, 14_450_688_000],
      [{ width: 1, height: 16_384, method: 'bicubic' }, 4_718_592_000],
    ] as const) {
      await t.rejects(run(t, { name: 'resize', ...options }, [row], open), {
        reason: 'SHAPE_MISMATCH',
        message: `built-in resize, inputs.image: got dims [1,6000,3], want pictures that take at most 1073741824 bytes for ${'method' in options ? options.method : 'bilinear'}, and not ${bytes}`,
      })
    }
    const [bytes] = await run(t, { name: 'resize', shortSide: 20, antialias: true }, [row], open)
    t.same(bytes?.shape, [20, 120_000, 3])
    const many = { ...row, shape: [2 ** 14, 2 ** 14, 0], data: new Uint8Array() }
    await t.rejects(run(t, { name: 'rotate', degrees: 90 }, [many], open), {
      message:
        'built-in rotate, inputs.image: got dims [16384,16384,0], want at most 134217728 pixels',
    })
  },
)

await t.test('a stack of no pictures is scaled to one of none', async (t) => {
  const run = await openBuiltins(t)
  const image = {
    name: 'image',
    datatype: 'UINT8',
    shape: [0, 5, 7, 3],
    data: new Uint8Array(0),
  } as const
  for (const { method, antialias } of METHODS) {
    const options = { width: 4, height: 3, method, antialias }
    for (const name of ['resize', 'letterbox']) {
      const [got] = await run(t, { name, ...options }, [image])
      t.same(got?.shape, [0, 3, 4, 3], `${name} ${method}`)
    }
  }
})
