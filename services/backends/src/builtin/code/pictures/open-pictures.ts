import type { OptionsOf } from '@tutti/builtins'
import { decodeBytesTensor, encodeBytesTensor, type TensorValue } from '@tutti/tensor'
import { inputOf, misfit, outputOf } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { decodePicture } from './decode-picture.ts'
import { encodePicture } from './encode-picture.ts'
import { loadLibvips } from './libvips.ts'
import { pictureOf } from './picture.ts'

/** Opens `imageDecode`. */
export async function openImageDecode(options: OptionsOf<'imageDecode'>): Promise<OpenedCode> {
  const sharp = await loadLibvips()
  return {
    run: async (inputs) => {
      const { width, height, channels, data } = await decodePicture(
        sharp,
        bytesOf(inputOf(inputs, 'data')),
        options,
      )
      return [
        { name: 'image', datatype: 'UINT8', shape: [height, width, channels], data },
        outputOf('size', [2], Int32Array.of(height, width)),
      ]
    },
  }
}

/** The bytes of a file, in one text or as numbers. */
function bytesOf({ datatype, data }: TensorValue): Uint8Array {
  if (datatype === 'UINT8') return data
  const elements = decodeBytesTensor(data)
  const [only] = elements
  if (elements.length === 1 && only !== undefined) return only
  throw misfit('data', `${elements.length} elements`, 'one')
}

/** Opens `imageEncode`. */
export async function openImageEncode(options: OptionsOf<'imageEncode'>): Promise<OpenedCode> {
  const sharp = await loadLibvips()
  return {
    run: async (inputs) => {
      const file = await encodePicture(sharp, pictureOf(inputOf(inputs, 'image')), options)
      return [{ name: 'data', datatype: 'BYTES', shape: [1], data: encodeBytesTensor([file]) }]
    },
  }
}
