// needs: python
import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins, Refused } from '../testing/builtin-steps.ts'
import { createDice, type Dice, python, times } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { equalTensors, numbersOf, numberTensor } from '../testing/random-tensors.ts'

/** Pictures as PIL saves them: mode, format, and arguments of `save`. */
const SAVED: readonly (readonly [mode: string, format: string, options: string])[] = [
  ['RGB', 'JPEG', 'quality=90'],
  ['RGB', 'JPEG', 'quality=60, subsampling=0'],
  ['RGB', 'JPEG', 'quality=80, subsampling=1, progressive=True'],
  ['L', 'JPEG', 'quality=85'],
  ['CMYK', 'JPEG', 'quality=95'],
  ['RGB', 'PNG', ''],
  ['RGB', 'PNG', 'icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()'],
  ['L', 'PNG', ''],
  ['1', 'PNG', ''],
  ['P', 'PNG', ''],
  ['LA', 'PNG', ''],
  ['RGBA', 'PNG', ''],
  ['RGB', 'WEBP', 'quality=70'],
  ['RGB', 'WEBP', 'lossless=True'],
  ['RGBA', 'WEBP', 'lossless=True'],
]

/** A picture of random colours, which change slowly or from pixel to pixel, in a mode of PIL. */
const MAKE = `
import io
from PIL import ImageCms, ImageOps
image = Image.fromarray(noise).resize((width, height), Image.BICUBIC)
if mode == 'RGBA' or mode == 'LA':
    image.putalpha(Image.fromarray(noise[..., 0]).resize((width, height)))
inks = Image.merge('CMYK', [*image.split(), Image.fromarray(noise[::-1, :, 0].copy()).resize((width, height))]) if mode == 'CMYK' else None
image = image.quantize(37) if mode == 'P' else inks if mode == 'CMYK' else image.convert(mode)
`

const text = (name: string, bytes: Uint8Array): NamedTensor => {
  return { name, datatype: 'BYTES', shape: [1], data: encodeBytesTensor([bytes]) }
}
const bytes = (name: string, data: Uint8Array): NamedTensor => {
  return { name, datatype: 'UINT8', shape: [data.byteLength], data }
}
const noise = (dice: Dice): NamedTensor => {
  const rows = dice.int(1, 60)
  return dice.tensor('noise', 'UINT8', [rows, rows, 3])
}
const side = (dice: Dice): number => dice.int(1, 90)

const hex = (digits: string): Buffer => Buffer.from(digits, 'hex')
const image = (...shape: number[]): NamedTensor =>
  numberTensor(
    'image',
    'UINT8',
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 7),
  )
const encode = (format: string) => ({ name: 'imageEncode', format })

await t.test('pictures', { skip: WITHOUT_PYTHON }, async (t) => {
  const run = await openBuiltins(t)
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  await t.test('decoded are equal to PIL', async (t) => {
    const dice = createDice()
    for (const _ of times(150)) {
      const one = {
        saved: dice.pick(...SAVED),
        width: side(dice),
        height: side(dice),
        orientation: dice.int(0, 8),
        applyOrientation: dice.isTrue(),
        color: dice.pick('RGB', 'BGR', 'GRAY'),
        isText: dice.isTrue(),
      }
      const [mode, format, options] = one.saved
      // PIL writes none into these.
      const orientation = format === 'JPEG' ? one.orientation : 0
      const exif = orientation === 0 ? '' : 'exif=exif,'
      const setup = `
mode, width, height = '${mode}', ${one.width}, ${one.height}
${MAKE}
exif = Image.Exif()
exif[0x112] = ${orientation}
file = io.BytesIO()
image.save(file, '${format}', ${exif} ${options})
opened = Image.open(file)
shown = ImageOps.exif_transpose(opened) if ${python(one.applyOrientation)} else opened
rgb = np.asarray(shown.convert('RGB'))
want = {'RGB': rgb, 'BGR': rgb[..., ::-1], 'GRAY': np.asarray(shown.convert('RGB').convert('L'))[..., None]}['${one.color}']
`
      const [file, want, size] = await numpy(
        `np.frombuffer(file.getvalue(), 'uint8'), want, np.array(want.shape[:2])`,
        [noise(dice)],
        setup,
      )
      const data = (one.isText ? text : bytes)('data', file?.data ?? new Uint8Array())
      const { color, applyOrientation } = one
      const given = { name: 'imageDecode', color, applyOrientation }
      const [image, got] = await run(t, given, [data], { data: [one.isText ? 1 : -1] })
      // PIL computes inks with black in whole numbers.
      const tolerance = mode === 'CMYK' ? { absolute: 1 } : {}
      equalTensors(t, image, want, JSON.stringify(one), tolerance)
      equalTensors(t, got, size, 'size')
    }
  })
  await t.test('of 16 bits give the upper 8', async (t) => {
    for (const [channels, convert] of [
      ['', '(pixels >> 8).astype("uint8")[..., None].repeat(3, -1)'],
      [', 3', '(pixels >> 8).astype("uint8")[..., ::-1]'],
    ]) {
      const [file, want] = await numpy(
        `cv2.imencode('.png', pixels)[1], ${convert}`,
        [],
        `pixels = np.random.default_rng(1).integers(0, 65536, (17, 23${channels})).astype('uint16')`,
      )
      const [image] = await run(t, { name: 'imageDecode' }, [
        bytes('data', file?.data ?? new Uint8Array()),
      ])
      equalTensors(t, image, want, `16 bits${channels}`)
    }
  })
  await t.test('encoded are those of PIL when they are decoded', async (t) => {
    const dice = createDice()
    for (const _ of times(60)) {
      const one = {
        format: dice.pick('jpeg', 'png', 'webp'),
        quality: dice.isTrue() ? dice.int(1, 100) : undefined,
        mode: dice.pick('L', 'RGB', 'RGBA'),
        color: dice.pick('RGB', 'BGR'),
        width: side(dice),
        height: side(dice),
      }
      const { format, color, mode } = one
      const quality = format === 'png' ? undefined : one.quality
      const saved = mode === 'RGBA' && format === 'jpeg' ? "image.convert('RGB')" : 'image'
      const setup = `
mode, width, height = '${mode}', ${one.width}, ${one.height}
${MAKE}
file = io.BytesIO()
${saved}.save(file, '${format}', ${quality === undefined ? '' : `quality=${quality}`})
pixels = np.atleast_3d(np.asarray(image))
order = [2, 1, 0, 3][:pixels.shape[2]] if '${color}' == 'BGR' and pixels.shape[2] > 1 else slice(None)
`
      const [pixels, want] = await numpy(
        `pixels[..., order], np.asarray(Image.open(file).convert('RGB'))`,
        [noise(dice)],
        setup,
      )
      if (pixels === undefined) throw new Error('no pixels')
      const given = {
        name: 'imageEncode',
        format,
        color,
        ...(quality === undefined ? {} : { quality }),
      }
      const [data] = await run(t, given, [{ ...pixels, name: 'image' }])
      if (data === undefined) throw new Error('no file')
      const [image] = await run(t, { name: 'imageDecode' }, [data])
      equalTensors(t, image, want, JSON.stringify(one))
    }
  })
})

const decode = { name: 'imageDecode' }

await t.test('what is no picture is refused, with what came', async (t) => {
  const run = await openBuiltins(t)
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>')
  for (const [data, message] of [
    [new Uint8Array(), 'input "data": no bytes, want a picture as jpeg, png, webp'],
    [
      svg,
      'input "data": 67 bytes that begin with 3c 73 76 67 20 78 6d 6c, want a picture as jpeg, png, webp',
    ],
    [Buffer.from('GIF89a'), /^input "data": 6 bytes that begin with 47 49 46/],
    [hex('49492a0008000000'), /^input "data": 8 bytes that begin with 49 49 2a 00/],
    [Buffer.from('\0\0\0\x1cftypheic'), /^input "data": 12 bytes that begin with 00 00 00 1c/],
    [hex('ffd8ffe000104a464946'), /^input "data": a damaged picture \(.+\), want a whole one$/],
    [hex('89504e470d0a1a0a'), /^input "data": a damaged picture \(.+\), want a whole one$/],
  ] as const) {
    await t.rejects(run(t, decode, [bytes('data', data)]), { reason: 'INVALID_REQUEST', message })
  }
  const two = { ...text('data', svg), shape: [2], data: encodeBytesTensor([svg, svg]) }
  await t.rejects(run(t, decode, [two], { data: [-1] }), {
    message: 'input "data": 2 elements, want one',
  })
})

await t.test(
  'pictures are measured before they are decoded, and no cut one is accepted',
  async (t) => {
    const run = await openBuiltins(t)
    const image = numberTensor(
      'image',
      'UINT8',
      [40, 50, 3],
      Array.from({ length: 6000 }, (_, i) => (i * 7) % 251),
    )
    for (const format of ['jpeg', 'png', 'webp']) {
      const [file] = await run(t, { name: 'imageEncode', format }, [image])
      if (file === undefined) throw new Error('no file')
      const limited = { ...decode, maxPixels: 1999 }
      await t.rejects(run(t, limited, [file]), {
        reason: 'INVALID_REQUEST',
        message: 'input "data": a picture of 50 x 40 pixels, want at most maxPixels, 1999',
      })
      const [whole] = await run(t, { ...decode, maxPixels: 2000 }, [file])
      t.same(whole?.shape, [40, 50, 3])
      const data = file.data.subarray(4)
      for (const share of [0.3, 0.6, 0.9, 0.98]) {
        const cut = data.subarray(0, Math.floor(data.byteLength * share))
        await t.rejects(
          run(t, decode, [bytes('data', cut)]),
          { reason: 'INVALID_REQUEST', message: /^input "data": a damaged picture/ },
          `${format} ${share}`,
        )
      }
      if (format === 'jpeg') {
        const passes = Buffer.concat([
          data,
          ...Array.from({ length: 100 }, () => Buffer.from('ffda', 'hex')),
        ])
        await t.rejects(run(t, decode, [bytes('data', passes)]), {
          reason: 'INVALID_REQUEST',
          message: 'input "data": a picture of 101 scans, want at most 100',
        })
      }
      if (format !== 'png') continue
      // A header of 2^31 - 1 by 2^31 - 1 pixels.
      const huge = Buffer.from(data)
      huge.write('7fffffff7fffffff', 16, 'hex')
      await t.rejects(run(t, decode, [bytes('data', huge)]), {
        reason: 'INVALID_REQUEST',
        message: /^input "data": a (damaged )?picture/,
      })
    }
  },
)

await t.test('what a format cannot have is refused', async (t) => {
  const run = await openBuiltins(t)
  await t.rejects(run(t, encode('png'), [image(2, 2, 2)]), {
    message: /"got":"dims \[2,2,2\]","want":"1, 3 or 4 channels"/,
  })
  await t.rejects(run(t, encode('jpeg'), [image(0, 2, 3)]), {
    message: /"got":"dims \[0,2,3\]","want":"1 to 65535 pixels on each side for jpeg"/,
  })
  await t.rejects(run(t, encode('webp'), [image(1, 16_384, 1)]), {
    message: /"got":"dims \[1,16384,1\]","want":"1 to 16383 pixels on each side for webp"/,
  })
  await t.rejects(
    run(t, { ...encode('png'), quality: 3 }, [image(1, 1, 1)]),
    new Refused([{ path: 'quality', got: '3', want: 'none for png' }]),
  )
  const [file] = await run(t, encode('png'), [image(1, 1, 1)])
  const [pixel] = await run(t, decode, [file ?? image(1)])
  t.same(numbersOf(pixel ?? image(1)), [7, 7, 7])
})
