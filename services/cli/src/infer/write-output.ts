import { writeFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { flagRefusal } from '@tutti/chassis'
import { encodePicture, readNamed } from '@tutti/command-line/client'
import { ServeError } from '@tutti/errors'
import { formatNpy, isNpyDatatype, mayBePicture } from '@tutti/formats'
import type { InferResponse, ReceivedTensorMetadata } from '@tutti/protocol'
import {
  decodeBytesTensor,
  elementCount,
  formatShape,
  inputRefusal,
  type NamedTensor,
} from '@tutti/tensor'
import { toJsonData } from './tensor-text.ts'

/** Paths of the files that `--output` gives, by output. */
export type OutputFiles = ReadonlyMap<ReceivedTensorMetadata, string>

/**
 * Reads `--output`, and checks that each output can be written in the form of its file.
 *
 * @param declared - the model's outputs.
 * @throws ServeError FLAG_INVALID; INVALID_REQUEST for a form that the output cannot have.
 */
export function readOutputFiles(
  texts: readonly string[],
  declared: readonly ReceivedTensorMetadata[],
): OutputFiles {
  const files = readNamed('output', texts, declared)
  const taken = new Map<string, string>()
  for (const [output, file] of files) {
    const other = taken.get(resolve(file))
    if (other !== undefined) {
      throw flagRefusal(
        '--output',
        `'${other}' and '${output.name}' have one file, want one for each`,
      )
    }
    taken.set(resolve(file), output.name)
    if (file === '-' || file === '') {
      const want = 'want a file, or --format json, which prints all elements'
      throw flagRefusal('--output', `got '${file}' for '${output.name}', ${want}`)
    }
    checkForm(output, file)
  }
  return files
}

/**
 * Writes the outputs of one response to their files.
 *
 * @param index - number of the response in a stream, from 1.
 * @returns `stored`: paths of the written files by output; `problems`: errors of outputs that could not be written.
 */
export async function storeOutputs(
  { outputs }: InferResponse,
  files: OutputFiles,
  index = 1,
): Promise<{ readonly stored: ReadonlyMap<string, string>; readonly problems: readonly Error[] }> {
  const stored = new Map<string, string>()
  const problems: Error[] = []
  for (const [{ name }, given] of files) {
    const tensor = outputs.find((output) => output.name === name)
    if (tensor === undefined) continue
    const file = index === 1 ? given : fileOfResponse(given, index)
    try {
      await writeFile(file, toFile(tensor, file))
      stored.set(name, file)
    } catch (error) {
      problems.push(error instanceof ServeError ? error : notWritten(name, error))
    }
  }
  return { stored, problems }
}

function notWritten(name: string, error: unknown): ServeError {
  return inputRefusal(`output '${name}' cannot be written: ${ServeError.from(error).message}`, name)
}

/** Builds an error for each output of `--output` that no response had. @param came - names of the outputs in responses. */
export function missingOutputs(files: OutputFiles, came: ReadonlySet<string>): readonly Error[] {
  const got = [...came].map((name) => `'${name}'`).join(', ') || 'no output'
  return [...files]
    .filter(([{ name }]) => !came.has(name))
    .map(([{ name }, file]) =>
      inputRefusal(`output '${name}' for ${file}: the answer has ${got}, want '${name}'`, name),
    )
}

/**
 * Converts an output to the content of its file: `.npy`, `.json` or `.png` by the file's extension, otherwise the bytes of the
 * tensor. A BYTES tensor gives the bytes of its one element with any extension other than `.json`.
 *
 * @returns parts that may be views of the tensor.
 * @throws ServeError INVALID_REQUEST if the tensor has no such form.
 */
export function toFile(tensor: NamedTensor, file: string): readonly Uint8Array[] {
  checkForm(tensor, file)
  const extension = extensionOf(file)
  if (extension === '.json') return [Buffer.from(`${JSON.stringify(toJsonData(tensor))}\n`)]
  if (tensor.datatype === 'BYTES') {
    const elements = decodeBytesTensor(tensor.data)
    return elements.length === 1 ? elements : refuse(tensor, file, NOT_ONE)
  }
  if (extension === '.npy') return formatNpy(tensor) ?? refuse(tensor, file, NOT_NUMPY)
  if (extension !== '.png') return [tensor.data]
  const picture = encodePicture(tensor)
  return picture === undefined ? refuse(tensor, file, NOT_PICTURE) : [picture]
}

const NOT_ONE = 'want .json unless it has one element'
const NOT_NUMPY = 'which NumPy has not; want .raw or .json'
const NOT_PICTURE = 'want UINT8 with 1, 3 or 4 channels for a picture, or .npy'

/** @param tensor - of an answer, or as the model declares it, with -1 for any extent. */
function checkForm(tensor: ReceivedTensorMetadata, file: string): void {
  const { datatype, shape } = tensor
  const extension = extensionOf(file)
  if (extension === '.json') return
  if (datatype === 'BYTES') {
    if (elementCount(shape.filter((extent) => extent !== -1)) !== 1) refuse(tensor, file, NOT_ONE)
  } else if (extension === '.npy') {
    if (!isNpyDatatype(datatype)) refuse(tensor, file, NOT_NUMPY)
  } else if (extension === '.png') {
    if (datatype !== 'UINT8' || !mayBePicture(shape)) refuse(tensor, file, NOT_PICTURE)
  } else if (/^\.(jpe?g|webp|gif|bmp|tiff?)$/.test(extension)) {
    refuse(tensor, file, 'want .png for a picture')
  }
}

function extensionOf(file: string): string {
  return extname(file).toLowerCase()
}

function refuse(
  { name, datatype, shape }: ReceivedTensorMetadata,
  file: string,
  why: string,
): never {
  const problem = `it is ${datatype}${formatShape(shape)}, ${why}`
  throw inputRefusal(`output '${name}' for ${file}: ${problem}`, name)
}

/** Names the file of a later response of a stream: `out.png` becomes `out.2.png` for the second. */
export function fileOfResponse(file: string, index: number): string {
  const extension = extname(file)
  return `${file.slice(0, file.length - extension.length)}.${index}${extension}`
}
