import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  ELEMENT_READERS,
  encodeBytesTensor,
  type NamedTensor,
  type TensorValue,
} from '@tutti/tensor'
import type { RequestedOutput, ResolvedModel } from '../inference-backend.ts'
import { toDecimalText } from './decimal-text.ts'

/** Triton's bound; a label list of that length is a mistake. They take a tenth of a second. */
const MAX_ELEMENTS = 1_000_000
/** Of one output: each is a text, which takes a microsecond. */
const MAX_CLASSES = 65_536

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

type Values = Float64Array | BigInt64Array | BigUint64Array

function emptyValues(datatype: Datatype, length: number): Record<number, number | bigint> & Values {
  if (datatype === 'INT64') return new BigInt64Array(length)
  return datatype === 'UINT64' ? new BigUint64Array(length) : new Float64Array(length)
}

/** The indexes of the first `count` values in the order of `compare`. To sort numbers alone takes a tenth of sorting them with indexes. */
function topIndexes(values: Values, count: number): readonly number[] {
  const sorted = values.toSorted()
  let numbers = sorted.length
  while (numbers > 0 && Number.isNaN(sorted[numbers - 1])) numbers -= 1
  const least = sorted[Math.max(0, numbers - count)] ?? 0
  const above: number[] = []
  const equal: number[] = []
  const others: number[] = []
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0
    if (value > least) above.push(index)
    else if (value < least) continue
    else if (value >= least) equal.push(index)
    else others.push(index)
  }
  const top = [
    ...above.toSorted((a, b) => compare(values[a] ?? 0, values[b] ?? 0)),
    ...equal,
    ...others,
  ]
  return top.slice(0, count)
}

function checkClasses(classes: number): void {
  if (classes <= MAX_CLASSES) return
  const text = `classification output has ${classes} classes, want at most ${MAX_CLASSES}`
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
 * @throws ServeError INVALID_REQUEST for a datatype without an order, more than a million elements, or more than 65,536 classes.
 */
export function classify(tensor: TensorValue, o: ClassifyOptions): TensorValue {
  const { datatype, data } = tensor
  const { labels = [], isBatched } = o
  const [read, itemSize] = readerOf(datatype)
  const elements = Math.floor(data.byteLength / itemSize)
  if (elements > MAX_ELEMENTS) {
    throw new ServeError('INVALID_REQUEST', 'classification output tensor too large')
  }
  const batch = isBatched ? (tensor.shape[0] ?? 1) : 1
  const perItem = batch === 0 ? 0 : Math.floor(elements / batch)
  const count = Math.min(o.count, perItem)
  checkClasses(batch * count)
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const isReal = datatype === 'FP32' || datatype === 'FP64'
  const classes: string[] = []
  for (let item = 0; item < batch; item++) {
    const values = emptyValues(datatype, perItem)
    for (let i = 0; i < perItem; i++) values[i] = read(view, item * perItem + i)
    for (const index of topIndexes(values, count)) {
      const value = values[index] ?? 0
      classes.push(classText(value, index, isReal, labels))
    }
  }
  return {
    datatype: 'BYTES',
    shape: isBatched ? [batch, count] : [count],
    data: encodeBytesTensor(classes.map((text) => Buffer.from(text))),
  }
}

/** The outputs, with classes in place of those for which a request asks for classes. */
export function toClasses(
  outputs: readonly NamedTensor[],
  wanted: readonly Pick<RequestedOutput, 'name' | 'classification'>[],
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
