import { ServeError } from '@tutti/errors'
import type { WarmupInput } from '@tutti/model-config'
import {
  DATATYPES,
  type Datatype,
  elementCount,
  encodeBytesTensor,
  fromConfigDatatype,
  type NamedTensor,
} from '@tutti/tensor'

export interface WarmUpDataOptions {
  /** Whether the shape gets a leading 1 for the batch; `dims` never has it. */
  readonly hasBatch: boolean
  /** Makes a number, uniform in [0, 1). */
  readonly random: () => number
  /** Reads a sample's file. */
  readonly read: (filename: string) => Promise<Uint8Array>
}

/**
 * Makes one input of a warm-up request.
 *
 * @throws ServeError MODEL_WARMUP_FAILED with Triton's text where it has one.
 */
export async function warmUpInput(
  name: string,
  input: WarmupInput,
  o: WarmUpDataOptions,
): Promise<NamedTensor> {
  const datatype = fromConfigDatatype(input.data_type)
  if (datatype === undefined) {
    throw refused(`warmup setting expects input '${name}' to have 'data_type' set`)
  }
  if (input.dims.some((extent) => extent < 0)) {
    throw refused(
      `warmup setting expects all variable-size dimensions are specified for input '${name}'`,
    )
  }
  const shape = o.hasBatch ? [1, ...input.dims] : [...input.dims]
  return { name, datatype, shape, data: await sampleData(name, input, { datatype, shape }, o) }
}

async function sampleData(
  name: string,
  input: WarmupInput,
  { datatype, shape }: Pick<NamedTensor, 'datatype' | 'shape'>,
  o: WarmUpDataOptions,
): Promise<Uint8Array> {
  const count = elementCount(shape)
  const { itemSize } = DATATYPES[datatype]
  if (input.input_data_file !== undefined) {
    const data = await o.read(input.input_data_file)
    // How many bytes BYTES elements take only their prefixes say; the request check reads those.
    if (itemSize === null) return data
    const want = count * itemSize
    if (data.byteLength < want) {
      throw refused(
        `warmup setting expects ${want} bytes, but the data provided from ${input.input_data_file} is ${data.byteLength} bytes`,
      )
    }
    return data.subarray(0, want)
  }
  if (input.zero_data === undefined && input.random_data === undefined) {
    throw refused(`warmup setting expects input '${name}' to have input_data_type set`)
  }
  if (itemSize === null) {
    // Triton gives empty strings for random data too.
    return encodeBytesTensor(Array.from({ length: count }, () => new Uint8Array()))
  }
  const data = new Uint8Array(count * itemSize)
  if (input.random_data !== undefined) fillRandom(data, datatype, o.random)
  return data
}

/** Floats in [0, 1), booleans 0 or 1, integers over their whole range: never a NaN that could hide a fault or slow a run. */
function fillRandom(data: Uint8Array, datatype: Datatype, random: () => number): void {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const size = DATATYPES[datatype].itemSize ?? 1
  const write = RANDOM_WRITERS[datatype]
  for (let at = 0; at < data.byteLength; at += size) {
    if (write !== undefined) write(view, at, random)
    else for (let i = 0; i < size; i += 1) data[at + i] = random() * 256
  }
}

type RandomWriter = (view: DataView, at: number, random: () => number) => void

/** Bit patterns below that of 1.0: the positive half and bfloat16 numbers under it are exactly [0, 1). */
const HALF_ONE = 0x3c00
const BFLOAT_ONE = 0x3f80

const RANDOM_WRITERS: Partial<Record<Datatype, RandomWriter>> = {
  BOOL: (view, at, random) => view.setUint8(at, random() < 0.5 ? 0 : 1),
  FP16: (view, at, random) => view.setUint16(at, random() * HALF_ONE, true),
  BF16: (view, at, random) => view.setUint16(at, random() * BFLOAT_ONE, true),
  FP32: (view, at, random) => view.setFloat32(at, random(), true),
  FP64: (view, at, random) => view.setFloat64(at, random(), true),
}

function refused(message: string): ServeError {
  return new ServeError('MODEL_WARMUP_FAILED', message, { code: 'INVALID_ARGUMENT' })
}
