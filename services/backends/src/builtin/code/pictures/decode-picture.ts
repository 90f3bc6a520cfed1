import { MAX_SCANS } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import type { Raw, Sharp } from 'sharp'
import { misfit } from '../code-inputs.ts'
import { inCodecSlot, type OpenSharp, swapped } from './libvips.ts'
import type { Picture } from './picture.ts'
import { describeBytes, formatOf, PICTURE_FORMATS } from './picture-format.ts'

/** Seconds that libvips may compute for one picture. One of 2^26 pixels takes about one. */
const MAX_SECONDS = 30
/** Begin of a pass. Within one these bytes do not occur. */
const SCAN = Buffer.from([0xff, 0xda])
/** Shares of the colours in a grey value, as in PIL (ITU-R 601), and a half for rounding, from a fourth channel of 255. */
const GREY: Four = [19_595 / 65_536, 38_470 / 65_536, 7471 / 65_536, 0.5 / 255]

type Four = [number, number, number, number]

export interface DecodeOptions {
  readonly color: 'RGB' | 'BGR' | 'GRAY'
  readonly maxPixels: number
  readonly applyOrientation: boolean
}

/**
 * Decodes a JPEG, PNG or WebP picture. Its size is read from its header first. Colour profiles do not count, alpha is left out, and of 16 bits
 * a channel the upper eight are taken, as PIL and OpenCV do. Of a moving picture the first one is decoded.
 *
 * @throws ServeError INVALID_REQUEST for other formats, for more pixels than are allowed, and for bytes that are cut short or damaged.
 */
export async function decodePicture(
  sharp: OpenSharp,
  data: Uint8Array,
  options: DecodeOptions,
): Promise<Picture> {
  const format = formatOf(data)
  if (format === undefined) {
    throw refuse(describeBytes(data), `a picture as ${PICTURE_FORMATS.join(', ')}`)
  }
  const scans = format === 'jpeg' ? countScans(data) : 0
  if (scans > MAX_SCANS) throw refuse(`a picture of ${scans} scans`, `at most ${MAX_SCANS}`)
  return await inCodecSlot(async () => {
    try {
      return await decode(sharp, data, options)
    } catch (error) {
      if (error instanceof ServeError) throw error
      throw refuse(`a damaged picture (${firstLine(error)})`, 'a whole one', error)
    }
  })
}

function countScans({ buffer, byteOffset, byteLength }: Uint8Array): number {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  let count = 0
  for (let at = bytes.indexOf(SCAN); at >= 0; at = bytes.indexOf(SCAN, at + SCAN.length)) count += 1
  return count
}

async function decode(
  sharp: OpenSharp,
  data: Uint8Array,
  options: DecodeOptions,
): Promise<Picture> {
  const { maxPixels, color } = options
  const header = await sharp(data, { limitInputPixels: false }).metadata()
  const { width, height } = header
  if (width * height > maxPixels) {
    throw refuse(`a picture of ${width} x ${height} pixels`, `at most maxPixels, ${maxPixels}`)
  }
  const read = sharp(data, { failOn: 'warning', ignoreIcc: true, limitInputPixels: maxPixels })
  const upright = options.applyOrientation ? read.autoOrient() : read
  if (header.space === 'cmyk') {
    const ink = await toRaw(upright.pipelineColourspace('cmyk').toColourspace('cmyk').negate())
    // As alpha over black, the share of black darkens the colours as PIL does.
    return await toColor(sharp, sharp(ink.data, ink).flatten({ background: '#000' }), color)
  }
  return await toColor(sharp, upright.removeAlpha().toColourspace('srgb'), color)
}

/** Gives pixels the channels of the option. */
async function toColor(
  sharp: OpenSharp,
  pixels: Sharp,
  color: DecodeOptions['color'],
): Promise<Picture> {
  if (color === 'GRAY') {
    const withOnes = await toRaw(pixels.ensureAlpha(1))
    const mixed = sharp(withOnes.data, withOnes).recomb([GREY, GREY, GREY, [0, 0, 0, 1]])
    return pictureOf(await toRaw(mixed.extractChannel(0)))
  }
  if (color === 'BGR') {
    return pictureOf(await toRaw(pixels.recomb(swapped(3))))
  }
  return pictureOf(await toRaw(pixels))
}

async function toRaw(pixels: Sharp): Promise<{ readonly data: Uint8Array; readonly raw: Raw }> {
  const { data, info } = await pixels
    .timeout({ seconds: MAX_SECONDS })
    .raw()
    .toBuffer({ resolveWithObject: true })
  const { width, height, channels } = info
  return { data, raw: { width, height, channels } }
}

function pictureOf({ data, raw }: { readonly data: Uint8Array; readonly raw: Raw }): Picture {
  return { ...raw, data }
}

function firstLine(error: unknown): string {
  const { message } = ServeError.from(error)
  return message.trim().split('\n')[0] ?? message
}

function refuse(got: string, want: string, cause?: unknown): ServeError {
  return misfit('data', got, want, cause)
}
