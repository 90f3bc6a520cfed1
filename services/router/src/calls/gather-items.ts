import { ServeError } from '@tutti/errors'
import { FAILED, LENGTHS, type PlanForEach } from '@tutti/graph'
import type { ModelConfig } from '@tutti/model-config'
import {
  formatShape,
  fromConfigDatatype,
  type NamedTensor,
  type Shape,
  type TensorValue,
} from '@tutti/tensor'

/** The outputs of one call, in the order of the items. */
export interface CallResult {
  readonly first: number
  /** Number of items. */
  readonly rows: number
  /** Undefined if the call failed, and its items have their defaults. */
  readonly outputs: readonly NamedTensor[] | undefined
}

export interface GatheredItems {
  readonly forEach: PlanForEach
  readonly config: ModelConfig
  /** Name of the step. */
  readonly step: string
  /** Outputs that are wanted, those that gathering makes among them. */
  readonly wanted: readonly string[]
  readonly isBatched: boolean
  readonly results: readonly CallResult[]
  /** Called with the bytes of a tensor before it is made. */
  readonly charge: (bytes: number) => void
}

/** The part of an output that one call made. */
interface Part {
  readonly first: number
  readonly rows: number
  readonly datatype: TensorValue['datatype']
  /** Shape of one item. */
  readonly shape: Shape
  readonly data: Uint8Array
  /** How often the data is there: a default is that of one item. */
  readonly times: number
}

/**
 * Gathers the outputs of all calls, in the order of the items. What one call made of all items is not copied.
 *
 * @throws ServeError ITEMS_INVALID if outputs do not fit together; what `charge` throws.
 */
export function gatherItems(o: GatheredItems): readonly NamedTensor[] {
  const { wanted, forEach, results } = o
  const lengths = forEach.gather === 'Concat' ? lengthsOf(o) : undefined
  return wanted.map((name) => {
    if (!isMade(forEach, name)) return gather(o, name)
    return lengths !== undefined && name === LENGTHS ? lengths : failedOf(results)
  })
}

/** Makes the name of some items of a step. */
export function nameItems(step: string, { first, rows }: Pick<CallResult, 'first' | 'rows'>) {
  return `${step}[${itemText({ first, rows })}]`
}

/** Writes which items: `12`, or `0..31` of a batch. */
export function itemText({ first, rows }: Pick<CallResult, 'first' | 'rows'>): string {
  return rows === 1 ? String(first) : `${first}..${first + rows - 1}`
}

/** Makes an error of some items. */
export function itemError(
  step: string,
  items: Pick<CallResult, 'first' | 'rows'>,
  text: string,
): ServeError {
  const details = { item: itemText(items) }
  return new ServeError('ITEMS_INVALID', `step '${nameItems(step, items)}': ${text}`, { details })
}

function gather(o: GatheredItems, name: string): NamedTensor {
  const isStack = o.forEach.gather === 'Stack'
  const parts = partsOf(o, name)
  const [like] = parts
  if (like === undefined) return empty(o, name)
  for (const part of parts) checkAlike(o, { name, like, part })
  const [, ...rest] = like.shape
  const extents = parts.map(({ rows, shape }) => (isStack ? rows : rows * (shape[0] ?? 0)))
  const extent = extents.reduce((sum, one) => sum + one, 0)
  const shape = [extent, ...(isStack ? like.shape : rest)]
  return { name, datatype: like.datatype, shape, data: join(parts, o.charge) }
}

function partsOf({ results, forEach, isBatched }: GatheredItems, name: string): readonly Part[] {
  return results.map(({ first, rows, outputs }): Part => {
    const value = outputs?.find((output) => output.name === name)
    if (value !== undefined) {
      const shape = isBatched ? value.shape.slice(1) : value.shape
      return { first, rows, datatype: value.datatype, shape, data: value.data, times: 1 }
    }
    const fallback = forEach.itemDefault?.get(name)
    if (fallback === undefined) throw new Error(`bug: item ${first} has no '${name}'`)
    return { first, rows, ...fallback, times: rows }
  })
}

/** @throws ServeError if an item has another type or shape than the first one. */
function checkAlike(
  { step, forEach }: GatheredItems,
  { name, like, part }: { readonly name: string; readonly like: Part; readonly part: Part },
): void {
  const isStack = forEach.gather === 'Stack'
  if (!isStack && part.shape.length === 0) {
    throw itemError(step, part, `output '${name}' has the shape [], want an axis for Concat`)
  }
  const of = ({ shape }: Part) => formatShape(isStack ? shape : [-1, ...shape.slice(1)])
  if (part.datatype === like.datatype && of(part) === of(like)) return
  const want = `${like.datatype}${of(like)} as ${nameItems(step, like)}`
  const text = `output '${name}' is ${part.datatype}${formatShape(part.shape)}, want ${want} for ${forEach.gather}`
  throw itemError(step, part, text)
}

function join(parts: readonly Part[], charge: (bytes: number) => void): Uint8Array {
  const [only] = parts
  if (only !== undefined && parts.length === 1 && only.times === 1) return only.data
  const size = parts.reduce((sum, { data, times }) => sum + data.byteLength * times, 0)
  charge(size)
  const joined = new Uint8Array(size)
  let at = 0
  for (const { data, times } of parts) {
    for (let i = 0; i < times; i++) {
      joined.set(data, at)
      at += data.byteLength
    }
  }
  return joined
}

/** Makes the output of no items, with every extent that is not known as 0. */
function empty({ config, forEach }: GatheredItems, name: string): NamedTensor {
  const output = config.output.find((one) => one.name === name)
  const datatype = fromConfigDatatype(output?.data_type ?? '') ?? 'FP32'
  const [, ...rest] = output?.dims ?? []
  const dims = forEach.gather === 'Stack' ? (output?.dims ?? []) : rest
  const shape = [0, ...dims.map((extent) => Math.max(0, extent))]
  return { name, datatype, shape, data: new Uint8Array() }
}

function failedOf(results: readonly CallResult[]): NamedTensor {
  const flags = results.flatMap(({ rows, outputs }) =>
    Array.from({ length: rows }, () => (outputs === undefined ? 1 : 0)),
  )
  return {
    name: FAILED,
    datatype: 'BOOL',
    shape: [flags.length],
    data: Uint8Array.from(flags),
  }
}

/** @throws ServeError if the outputs of an item do not have the same length. */
function lengthsOf(o: GatheredItems): NamedTensor {
  const names = outputsToAsk(o)
  const lengths: bigint[] = []
  for (const result of o.results) {
    const [like, ...others] = names.map((name) => ({ name, length: lengthOf(o, result, name) }))
    const odd = others.find(({ length }) => length !== like?.length)
    if (odd !== undefined) {
      const text = `the extents along axis 0 of '${like?.name}' and '${odd.name}' are ${like?.length} and ${odd.length}, want one for Concat`
      throw itemError(o.step, result, text)
    }
    for (let row = 0; row < result.rows; row++) lengths.push(BigInt(like?.length ?? 0))
  }
  const data = new Uint8Array(BigInt64Array.from(lengths).buffer)
  return { name: LENGTHS, datatype: 'INT64', shape: [lengths.length], data }
}

/** Returns the extent of an item along axis 0; 0 for one that failed, where nothing stands in for the output. */
function lengthOf(
  { forEach, isBatched }: GatheredItems,
  { outputs }: CallResult,
  name: string,
): number {
  const made = outputs?.find((output) => output.name === name)
  if (made !== undefined) return made.shape[isBatched ? 1 : 0] ?? 0
  return forEach.itemDefault?.get(name)?.shape[0] ?? 0
}

/** Tells whether an output is none of the model, but tells of the items. */
function isMade({ itemDefault, gather: how }: PlanForEach, name: string): boolean {
  return (name === FAILED && itemDefault !== undefined) || (name === LENGTHS && how === 'Concat')
}

/** Lists the outputs that each item is asked for: those that are wanted, or the one that tells of all items where none is. */
export function outputsToAsk({
  wanted,
  config,
  forEach,
}: Pick<GatheredItems, 'wanted' | 'config' | 'forEach'>): readonly string[] {
  const read = wanted.filter((name) => !isMade(forEach, name))
  if (read.length > 0) return read
  const [first = config.output[0]?.name] = forEach.itemDefault?.keys() ?? []
  return first === undefined ? [] : [first]
}
