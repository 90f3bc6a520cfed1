import { ServeError } from '@tutti/errors'
import type { PlanForEach } from '@tutti/graph'
import {
  elementCount,
  formatShape,
  type NamedTensor,
  NUMBER_READERS,
  repeatBytes,
  walkBytesTensor,
} from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'

/** The calls into which a step that runs for each item is cut. */
export interface CutItems {
  /** Number of items. */
  readonly count: number
  /** Items of each call but the last one, which has what is left. */
  readonly perCall: number
  /** Whether a call has a batch dimension. */
  readonly isBatched: boolean
  /** Makes the inputs for the items from `first` on: views of the step's inputs. */
  inputsOf(first: number, rows: number): readonly NamedTensor[]
}

/** Makes the input of the items from `first` on. */
type CutInput = (first: number, rows: number) => NamedTensor

/**
 * Cuts the inputs of a step into items.
 *
 * @param o.charge - called with the bytes of what is repeated for the rows of a batch, before it is made.
 * @throws ServeError ITEMS_INVALID if there are too many items, or tensors do not agree on their number.
 */
export function cutItems(
  forEach: PlanForEach,
  call: Pick<ModelCall, 'target' | 'request' | 'controls' | 'step'>,
  charge: (bytes: number) => void,
): CutItems {
  const { max_batch_size: maxBatchSize } = call.target.config
  const { inputs } = call.request
  const isBatched = maxBatchSize > 0
  const there = countRows(forEach, call)
  const count = forEach.count === undefined ? there : readCount(forEach.count, there, call)
  if (count > forEach.maxItems) {
    throw invalid(call, `got ${count} items, want at most ${forEach.maxItems} (maxItems)`)
  }
  const perCall = isBatched ? maxBatchSize : 1
  const rows = Math.min(perCall, count)
  const cuts = inputs.map((input): CutInput => {
    if (forEach.items.includes(input.name)) return cutRows(input, there, isBatched)
    return isBatched ? repeat(input, rows, charge) : () => input
  })
  return {
    count,
    perCall,
    isBatched,
    inputsOf: (first, taken) => cuts.map((cut) => cut(first, taken)),
  }
}

function countRows(
  { items }: Pick<PlanForEach, 'items'>,
  call: Pick<ModelCall, 'request' | 'step'>,
): number {
  let first: NamedTensor | undefined
  for (const input of call.request.inputs) {
    if (!items.includes(input.name)) continue
    const { name, shape } = input
    if (shape.length === 0) {
      throw invalid(call, `the input '${name}' has the shape [], want a dimension of items`)
    }
    first ??= input
    if (shape[0] === first.shape[0]) continue
    const text = `got ${first.shape[0]} items in '${first.name}' and ${shape[0]} in '${name}', want as many in both`
    throw invalid(call, text)
  }
  return first?.shape[0] ?? 0
}

function readCount(
  name: string,
  there: number,
  call: Pick<ModelCall, 'controls' | 'step'>,
): number {
  const tensor = call.controls?.find((one) => one.name === name)
  if (tensor === undefined) throw invalid(call, `the count '${name}' is absent, want it`)
  const { data, datatype, shape } = tensor
  if (elementCount(shape) !== 1) {
    throw invalid(call, `the count '${name}' has the shape ${formatShape(shape)}, want one integer`)
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const count = Number(NUMBER_READERS[datatype]?.(view, 0) ?? Number.NaN)
  if (Number.isInteger(count) && count >= 0 && count <= there) return count
  throw invalid(call, `the count '${name}' is ${count}, want 0 to ${there}, the number of items`)
}

/** Cuts a tensor along axis 0. */
function cutRows({ name, datatype, shape, data }: NamedTensor, count: number, isBatched: boolean) {
  const [, ...rest] = shape
  const at = datatype === 'BYTES' ? rowOffsets(data, count, elementCount(rest)) : undefined
  const rowBytes = count === 0 ? 0 : data.byteLength / count
  const offset = (row: number): number => at?.[row] ?? row * rowBytes
  return (first: number, rows: number): NamedTensor => ({
    name,
    datatype,
    shape: isBatched ? [rows, ...rest] : rest,
    data: data.subarray(offset(first), offset(first + rows)),
  })
}

/** Finds where each row of a BYTES tensor begins, and where the last one ends. */
function rowOffsets(data: Uint8Array, rows: number, perRow: number): readonly number[] {
  const offsets = [0]
  let elements = 0
  if (perRow > 0) {
    walkBytesTensor(data, (_begin, end) => {
      elements += 1
      if (elements % perRow === 0) offsets.push(end)
    })
  }
  while (offsets.length <= rows) offsets.push(offsets.at(-1) ?? 0)
  return offsets
}

/** Repeats a tensor that is the same for every item, once for all calls. */
function repeat(
  { name, datatype, shape, data }: NamedTensor,
  most: number,
  charge: (bytes: number) => void,
): CutInput {
  const { byteLength } = data
  if (most > 1) charge(most * byteLength)
  const repeated = repeatBytes(data, Math.max(1, most))
  return (_first, rows) => ({
    name,
    datatype,
    shape: [rows, ...shape],
    data: repeated.subarray(0, rows * byteLength),
  })
}

function invalid({ step }: Pick<ModelCall, 'step'>, text: string): ServeError {
  return new ServeError('ITEMS_INVALID', `step '${step}': ${text}`)
}
