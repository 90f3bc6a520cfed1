import { ServeError } from '@tutti/errors'
import { pictureLayout } from '@tutti/formats'
import { formatShape, inputRefusal, type Shape, type TensorValue } from '@tutti/tensor'
import { PNG } from 'pngjs'

const PNG_MAGIC = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const RGBA = 4
const OPAQUE = 255

export function isPng(bytes: Uint8Array): boolean {
  return PNG_MAGIC.equals(bytes.subarray(0, PNG_MAGIC.byteLength))
}

/**
 * Decodes a PNG to a UINT8 tensor, with the channels in the order red, green, blue, alpha.
 *
 * @param declared - shape of the model's input.
 * @throws ServeError INVALID_REQUEST if the picture does not fit the shape, or if the shape is not that of a picture.
 */
export function decodePicture(bytes: Uint8Array, declared: Shape): TensorValue {
  const layout = pictureLayout(declared)
  if (layout === undefined) {
    throw inputRefusal(
      `${formatShape(declared)} does not say where the colours are; want a .npy file`,
    )
  }
  const { width, height, data, depth } = read(bytes)
  if (depth > 8) throw inputRefusal(`the picture has ${depth} bits a colour, want 8`)
  const wanted = [layout.height, layout.width]
  if (wanted.some((extent, i) => extent !== -1 && extent !== [height, width][i])) {
    throw inputRefusal(`the picture is ${width} x ${height} pixels, want ${formatShape(declared)}`)
  }
  const { channels, isPlanar } = layout
  checkColours(data, channels)
  const size = width * height
  const values = new Uint8Array(size * channels)
  for (let pixel = 0; pixel < size; pixel++) {
    for (let channel = 0; channel < channels; channel++) {
      const at = isPlanar ? channel * size + pixel : pixel * channels + channel
      values[at] = data[pixel * RGBA + channel] ?? 0
    }
  }
  const planes = isPlanar ? [channels, height, width] : [height, width, channels]
  const shape = declared.length === 2 ? [height, width] : planes
  return { datatype: 'UINT8', shape, data: values }
}

function read(bytes: Uint8Array): ReturnType<typeof PNG.sync.read> {
  try {
    return PNG.sync.read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  } catch (cause) {
    const { message } = ServeError.from(cause)
    throw new ServeError('INVALID_REQUEST', `the PNG cannot be read: ${message}`, { cause })
  }
}

/** Refuses a picture of which something would be lost. */
function checkColours(data: Uint8Array, channels: number): void {
  if (channels === RGBA) return
  for (let at = 0; at < data.length; at += RGBA) {
    const isGrey = data[at] === data[at + 1] && data[at] === data[at + 2]
    if (channels === 1 && !isGrey) throw inputRefusal('the picture has colours, want a grey one')
    if (data[at + 3] !== OPAQUE)
      throw inputRefusal('the picture is transparent, want an opaque one')
  }
}

/** Encodes a tensor as a PNG. @returns undefined if the tensor is not a picture of UINT8. */
export function encodePicture({ datatype, shape, data }: TensorValue): Uint8Array | undefined {
  const layout = datatype === 'UINT8' ? pictureLayout(shape) : undefined
  if (layout === undefined || layout.width * layout.height === 0) return undefined
  const { width, height, channels, isPlanar } = layout
  const size = width * height
  const pixels = Buffer.alloc(size * RGBA, OPAQUE)
  for (let pixel = 0; pixel < size; pixel++) {
    for (let colour = 0; colour < Math.max(3, channels); colour++) {
      const channel = channels === 1 ? 0 : colour
      const at = isPlanar ? channel * size + pixel : pixel * channels + channel
      pixels[pixel * RGBA + colour] = data[at] ?? 0
    }
  }
  return PNG.sync.write({ width, height, data: pixels })
}
