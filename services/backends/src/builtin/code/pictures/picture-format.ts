/** Formats of pictures that are read and written. */
export const PICTURE_FORMATS = ['jpeg', 'png', 'webp'] as const
export type PictureFormat = (typeof PICTURE_FORMATS)[number]

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

const RIFF = [...Buffer.from('RIFF')]
const WEBP = [...Buffer.from('WEBP')]

/** Tells the format by the first bytes; undefined for all others. */
export function formatOf(data: Uint8Array): PictureFormat | undefined {
  const begins = (bytes: readonly number[], at = 0): boolean =>
    bytes.every((byte, i) => data[at + i] === byte)
  if (begins([0xff, 0xd8, 0xff])) return 'jpeg'
  if (begins(PNG)) return 'png'
  return begins(RIFF) && begins(WEBP, 8) ? 'webp' : undefined
}

/** Words for bytes that are none of the formats. */
export function describeBytes(data: Uint8Array): string {
  if (data.byteLength === 0) return 'no bytes'
  const begin = Buffer.from(data.subarray(0, 8))
    .toString('hex')
    .replace(/(..)(?=.)/g, '$1 ')
  return `${data.byteLength} bytes that begin with ${begin}`
}
