import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  encodeBytesTensor,
  type NamedTensor,
  type TensorValue,
} from '@tutti/tensor'
import type { RequestedOutput, ResolvedModel } from '../backend/inference-backend.ts'
import { toDecimalText } from './decimal-text.ts'

/** Triton's bound; a label list of that length is a mistake. */
const MAX_ELEMENTS = 1_000_000
/** Classes of one output: each is a text, which takes two microseconds. */
const MAX_CLASSES = 16_384

/** Compares values for descending order; equal values keep their order and NaN comes last. */
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

/** Arrays of the datatypes that have an order, as Triton has it. */
const ARRAYS: Readonly<Partial<Record<Datatype, new (bytes: ArrayBuffer) => Numbers | Values>>> = {
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP32: Float32Array,
  FP64: Float64Array,
}
type Numbers =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | Int8Array
  | Int16Array
  | Int32Array
  | Float32Array
type Values = Float64Array | BigInt64Array | BigUint64Array

/** Returns the elements of a tensor as a typed array, of which a million take no time. */
function valuesOf({ datatype, data }: TensorValue): Values {
  const { itemSize } = DATATYPES[datatype]
  const ofType = ARRAYS[datatype]
  if (ofType === undefined || itemSize === null) {
    const text = `class result not available for output due to unsupported type '${datatype}'`
    throw new ServeError('INVALID_REQUEST', text)
  }
  const elements = Math.floor(data.byteLength / itemSize)
  if (elements > MAX_ELEMENTS) {
    throw new ServeError('INVALID_REQUEST', 'classification output tensor too large')
  }
  const array = new ofType(Uint8Array.from(data.subarray(0, elements * itemSize)).buffer)
  if (array instanceof BigInt64Array || array instanceof BigUint64Array) return array
  return array instanceof Float64Array ? array : new Float64Array(array)
}

type Sortable = Values & Record<number, number | bigint>

/** Looks at values in partitions, times the values: an order that a client has chosen could make them very many. */
const MAX_LOOKS = 8

/**
 * Finds the value that `count` values are not below, or the last one of fewer. Quickselect takes a fifth of sorting. NaN do not
 * count.
 */
function leastOfTop(values: Values, count: number): number | bigint {
  const left: Sortable = values.slice()
  const length = dropNaN(left)
  const want = Math.min(count, length) - 1
  let [from, to] = [0, length - 1]
  let looks = 0
  while (from < to) {
    looks += to - from
    // In ascending order.
    if (looks > MAX_LOOKS * length) return left.subarray(from, to + 1).toSorted()[to - want] ?? 0
    const [upTo, after] = partition(left, from, to)
    if (want <= upTo) to = upTo
    else if (want >= after) from = after
    else break
  }
  return left[want] ?? 0
}

/** @returns how many values are left, at the begin. */
function dropNaN(values: Sortable): number {
  let length = 0
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? 0
    if (!Number.isNaN(value)) values[length++] = value
  }
  return length
}

/** Partitions values, as Hoare does. @returns the end of the larger values, and the begin of the smaller ones. */
function partition(values: Sortable, from: number, to: number): readonly [number, number] {
  const pivot = values[(from + to) >>> 1] ?? 0
  let [i, j] = [from, to]
  while (i <= j) {
    while ((values[i] ?? 0) > pivot) i += 1
    while ((values[j] ?? 0) < pivot) j -= 1
    if (i > j) break
    const moved = values[i] ?? 0
    values[i++] = values[j] ?? 0
    values[j--] = moved
  }
  return [j, i]
}

/** Lists the indexes of the first `count` values in the order of `compare`. */
function topIndexes(values: Values, count: number): readonly number[] {
  const least = leastOfTop(values, count)
  const above: number[] = []
  const equal: number[] = []
  const others: number[] = []
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0
    if (value > least) above.push(index)
    else if (value < least) continue
    else {
      const list = value >= least ? equal : others
      if (list.length < count) list.push(index)
    }
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
 * Formats the top classes of a tensor as Triton prints them: BYTES elements `value:index` or `value:index:label`, values
 * descending, shape [batch, k], or [k] without a batch (triton-semantics 2.6). Copies.
 *
 * @throws ServeError INVALID_REQUEST for a datatype without an order, more than a million elements, or more than 16,384 classes.
 */
export function classify(tensor: TensorValue, o: ClassifyOptions): TensorValue {
  const { datatype } = tensor
  const { labels = [], isBatched } = o
  const values = valuesOf(tensor)
  const batch = isBatched ? (tensor.shape[0] ?? 1) : 1
  const perItem = batch === 0 ? 0 : Math.floor(values.length / batch)
  const count = Math.min(o.count, perItem)
  checkClasses(batch * count)
  const isReal = datatype === 'FP32' || datatype === 'FP64'
  const classes: string[] = []
  for (let item = 0; item < batch; item++) {
    const ofItem = values.subarray(item * perItem, (item + 1) * perItem)
    for (const index of topIndexes(ofItem, count)) {
      const value = ofItem[index] ?? 0
      classes.push(classText(value, index, isReal, labels))
    }
  }
  return {
    datatype: 'BYTES',
    shape: isBatched ? [batch, count] : [count],
    data: encodeBytesTensor(classes.map((text) => Buffer.from(text))),
  }
}

/** Replaces the outputs for which a request asks for classes by their classes. */
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
