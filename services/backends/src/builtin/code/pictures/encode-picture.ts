import { bug } from '@tutti/errors'
import { inCodecSlot, type OpenSharp, swapped } from './libvips.ts'
import type { Picture } from './picture.ts'
import type { PictureFormat } from './picture-format.ts'

/** Seconds that libvips may compute for one picture. */
const MAX_SECONDS = 30
const QUALITY = { jpeg: 75, webp: 80 } as const

export interface EncodeOptions {
  readonly format: PictureFormat
  readonly quality?: number | undefined
  readonly color: 'RGB' | 'BGR'
}

/**
 * Encodes a picture of one, three or four channels: grey, colours, colours with alpha. JPEG leaves alpha out.
 *
 * @param picture - of sides that the format can have.
 */
export async function encodePicture(
  sharp: OpenSharp,
  picture: Picture,
  { format, quality, color }: EncodeOptions,
): Promise<Uint8Array> {
  const { data, width, height, channels } = picture
  if (channels !== 1 && channels !== 3 && channels !== 4)
    throw bug(`a picture of ${channels} channels`)
  const raw = { width, height, channels } as const
  return await inCodecSlot(async () => {
    const pixels = sharp(data, { raw, limitInputPixels: false }).timeout({ seconds: MAX_SECONDS })
    const opaque = format === 'jpeg' ? pixels.removeAlpha() : pixels
    const encode = {
      jpeg: () => opaque.jpeg({ quality: quality ?? QUALITY.jpeg }),
      png: () => opaque.png(),
      webp: () => opaque.webp({ quality: quality ?? QUALITY.webp }),
    }
    if (color === 'BGR' && channels !== 1) opaque.recomb(swapped(format === 'jpeg' ? 3 : channels))
    return await encode[format]().toBuffer()
  })
}
