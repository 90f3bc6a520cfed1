import { ServeError } from '@tutti/errors'
import { ELEMENT_READERS } from '@tutti/protocol'
import {
  DATATYPES,
  type Datatype,
  encodeBytesTensor,
  type NamedTensor,
  type TensorValue,
} from '@tutti/tensor'
import type { RequestedOutput, ResolvedModel } from '../inference-backend.ts'
import { toDecimalText } from './decimal-text.ts'

/** Triton's bound; a label list of that length is a mistake. */
const MAX_ELEMENTS = 1_000_000

/** Descending; equal values keep their order and NaN comes last. */
function compare(a: number | bigint, b: number | bigint): number {
  if (a > b) return -1
  if (a < b) return 1
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b))
}

function classText(
  value: number | bigint,
  index: number,
  isReal: boolean,
  labels: readonly string[],
): string {
  const number = isReal ? toDecimalText(Number(value)) : value.toString()
  const label = labels[index] ?? ''
  return label === '' ? `${number}:${index}` : `${number}:${index}:${label}`
}

function readerOf(datatype: Datatype) {
  const read = ELEMENT_READERS[datatype]
  const { itemSize } = DATATYPES[datatype]
  if (read !== undefined && itemSize !== null && datatype !== 'BOOL')
    return [read, itemSize] as const
  const text = `class result not available for output due to unsupported type '${datatype}'`
  throw new ServeError('INVALID_REQUEST', text)
}

interface ClassifyOptions {
  /** How many classes are wanted, above 0. */
  readonly count: number
  readonly labels?: readonly string[] | undefined
  /** Whether dimension 0 is the batch: then each item is classified by itself. */
  readonly isBatched: boolean
}

/**
 * The top classes of a tensor as Triton prints them: BYTES elements `value:index` or `value:index:label`, values
 * descending, shape [batch, k], or [k] without a batch (triton-semantics 2.6). Copies.
 *
 * @throws ServeError INVALID_REQUEST for a datatype without an order, or more than a million elements.
 */
export function classify(tensor: TensorValue, o: ClassifyOptions): TensorValue {
  const { datatype, data } = tensor
  const [read, itemSize] = readerOf(datatype)
  const elements = Math.floor(data.byteLength / itemSize)
  if (elements > MAX_ELEMENTS) {
    throw new ServeError('INVALID_REQUEST', 'classification output tensor too large')
  }
  const batch = o.isBatched ? (tensor.shape[0] ?? 1) : 1
  const perItem = batch === 0 ? 0 : Math.floor(elements / batch)
  const count = Math.min(o.count, perItem)
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const isReal = datatype === 'FP32' || datatype === 'FP64'
  const classes: Uint8Array[] = []
  for (let item = 0; item < batch; item++) {
    const values = Array.from({ length: perItem }, (_, i) => read(view, item * perItem + i))
    const order = values.map((value, index) => ({ value, index }))
    order.sort((a, b) => compare(a.value, b.value))
    for (const { value, index } of order.slice(0, count)) {
      classes.push(Buffer.from(classText(value, index, isReal, o.labels ?? [])))
    }
  }
  return {
    datatype: 'BYTES',
    shape: o.isBatched ? [batch, count] : [count],
    data: encodeBytesTensor(classes),
  }
}

/** The outputs, with classes in place of those for which a request asks for classes. */
export function toClasses(
  outputs: readonly NamedTensor[],
  wanted: readonly RequestedOutput[],
  model: ResolvedModel,
): readonly NamedTensor[] {
  const counts = new Map(wanted.map(({ name, classification }) => [name, classification]))
  return outputs.map((output) => {
    const count = counts.get(output.name) ?? 0
    if (count === 0) return output
    const isBatched = model.config.max_batch_size > 0
    const labels = model.labels(output.name)
    return { name: output.name, ...classify(output, { count, labels, isBatched }) }
  })
}
