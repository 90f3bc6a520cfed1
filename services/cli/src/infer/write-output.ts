import { extname } from 'node:path'
import { ServeError } from '@tutti/errors'
import { bytesElements, decodeBytesTensor, formatShape, type NamedTensor } from '@tutti/tensor'
import { formatNpy } from './npy.ts'
import { encodePicture } from './picture.ts'
import { toJsonData } from './tensor-text.ts'

/**
 * The content of the file that an output is written to: by its extension `.npy`, `.json` or `.png`, otherwise the bytes of the tensor. The
 * one element of a BYTES tensor is written as it is, whatever the file is called, but for `.json`.
 *
 * @returns parts that may be views of the tensor.
 * @throws ServeError INVALID_REQUEST if the tensor has no such form.
 */
export function toFile(tensor: NamedTensor, file: string): readonly Uint8Array[] {
  const extension = extname(file).toLowerCase()
  if (extension === '.json') return [Buffer.from(`${JSON.stringify(toJsonData(tensor))}\n`)]
  if (tensor.datatype === 'BYTES') return [onlyElement(tensor, file)]
  if (extension === '.npy') {
    return formatNpy(tensor) ?? refuse(tensor, file, 'which NumPy has not; want .raw or .json')
  }
  if (extension === '.png') {
    const picture = encodePicture(tensor)
    return picture === undefined
      ? refuse(tensor, file, 'want UINT8 with 1, 3 or 4 channels for a picture, or .npy')
      : [picture]
  }
  if (/^\.(jpe?g|webp|gif|bmp|tiff?)$/.test(extension)) {
    return refuse(tensor, file, 'want .png for a picture')
  }
  return [tensor.data]
}

function onlyElement(tensor: NamedTensor, file: string): Uint8Array {
  const [element, second] = bytesElements(tensor.data)
  if (element !== undefined && second === undefined) return element
  const count = decodeBytesTensor(tensor.data).length
  return refuse(tensor, file, `${count} elements; want .json for more than one`)
}

function refuse({ name, datatype, shape }: NamedTensor, file: string, why: string): never {
  throw new ServeError(
    'INVALID_REQUEST',
    `output '${name}' for ${file}: it is ${datatype}${formatShape(shape)}, ${why}`,
    { details: { field: name } },
  )
}

/** The file of one response of a stream: `out.png` is `out.2.png` for the second. */
export function fileOfResponse(file: string, index: number): string {
  const extension = extname(file)
  return `${file.slice(0, file.length - extension.length)}.${index}${extension}`
}
