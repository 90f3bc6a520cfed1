import { flagRefusal, type ProcessEnvironment } from '@tutti/chassis'
import {
  MOST_TENSOR_BYTES,
  parseShape,
  readInputs,
  readNamed,
  splitNamed,
} from '@tutti/command-line/client'
import type { ReceivedMetadata, ReceivedTensorMetadata } from '@tutti/protocol'
import {
  DATATYPES,
  type Datatype,
  elementCount,
  encodeBytesTensor,
  formatShape,
  type NamedTensor,
  toBrain,
  toHalf,
} from '@tutti/tensor'
import { seededRandom } from './open-loop.ts'

/** Element of a BYTES tensor, with its length before it. */
const BYTES_ELEMENT = encodeBytesTensor([Buffer.from('a')])

/**
 * Reads the inputs of `--input`, and makes values for other inputs. Without `--input`, all inputs are made; else only those that
 * `--shape` names, since inputs may be optional.
 *
 * @throws ServeError FLAG_INVALID for an unknown size, or INVALID_REQUEST for a value that does not fit.
 */
export async function benchInputs(
  { inputs, ...metadata }: ReceivedMetadata,
  flags: { readonly input: readonly string[]; readonly shape: readonly string[] },
  environment: ProcessEnvironment,
): Promise<readonly NamedTensor[]> {
  const given = readNamed('input', flags.input, inputs)
  const shapes = readNamed('shape', flags.shape, inputs)
  const isGiven = (text: string): boolean => given.has(splitNamed('shape', text, inputs)[0])
  const shape = flags.shape.filter(isGiven)
  const read = await readInputs({ ...metadata, inputs }, { ...flags, shape }, environment)
  const made = inputs
    .filter((input) => !given.has(input) && (given.size === 0 || shapes.has(input)))
    .map((input) => makeInput(input, shapes.get(input)))
  return [...read, ...made]
}

/**
 * Makes an input that fits the model's declaration: floats from 0 to below 1, integers 0 or 1, since many are indices, and texts
 * of one letter. The values are the same in each run.
 *
 * @param shapeText - value of `--shape` for the input; the declared shape if undefined.
 * @throws ServeError FLAG_INVALID for an unknown size, or for a tensor that is too large for one message.
 */
export function makeInput(
  declared: ReceivedTensorMetadata,
  shapeText: string | undefined,
): NamedTensor {
  const { name, datatype } = declared
  const shape =
    shapeText === undefined ? declared.shape : parseShape(name, shapeText, declared.shape)
  if (shape.includes(-1)) {
    const example = shape.map((extent) => (extent === -1 ? 1 : extent)).join(',')
    const what = `input '${name}' is ${datatype}${formatShape(shape)}`
    const want = `want its sizes, such as --shape ${name}=${example}, or its values, --input ${name}=VALUE`
    throw flagRefusal('--shape', `${what}; ${want}`)
  }
  const count = elementCount(shape)
  const bytes = count * (DATATYPES[datatype].itemSize ?? BYTES_ELEMENT.byteLength)
  if (bytes > MOST_TENSOR_BYTES) {
    const problem = `input '${name}' has ${bytes} bytes, want at most ${MOST_TENSOR_BYTES}`
    throw flagRefusal('--shape', problem)
  }
  return { name, datatype, shape, data: makeData(datatype, count) }
}

type Write = (view: DataView, index: number, random: () => number) => void

const FLOATS: Readonly<Partial<Record<Datatype, Write>>> = {
  FP16: (view, i, random) => view.setUint16(i * 2, toHalf(random()), true),
  BF16: (view, i, random) => view.setUint16(i * 2, toBrain(random()), true),
  FP32: (view, i, random) => view.setFloat32(i * 4, random(), true),
  FP64: (view, i, random) => view.setFloat64(i * 8, random(), true),
}

function makeData(datatype: Datatype, count: number): Uint8Array {
  const { itemSize } = DATATYPES[datatype]
  // There may be more elements than an array can have.
  if (itemSize === null) return Buffer.alloc(count * BYTES_ELEMENT.byteLength, BYTES_ELEMENT)
  // Little-endian: the first byte of an integer is its lowest.
  const write: Write =
    FLOATS[datatype] ?? ((view, i, random) => view.setUint8(i * itemSize, random() < 0.5 ? 0 : 1))
  const random = seededRandom(1)
  const data = new Uint8Array(count * itemSize)
  const view = new DataView(data.buffer)
  for (let i = 0; i < count; i += 1) write(view, i, random)
  return data
}
