import { deepStrictEqual } from 'node:assert'
import { ServeError } from '@tutti/errors'
import type { PlanForEach } from '@tutti/graph'
import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import {
  type Arbitrary,
  array,
  assert,
  boolean,
  constant,
  constantFrom,
  integer,
  nat,
  oneof,
  option,
  property,
  record,
  string,
} from 'fast-check'
import t from 'tap'
import { createRepeatRig, type RepeatedCall } from '../testing/repeat-rig.ts'
import { withForEach } from './mapped-call.ts'

/** A run of a step for each item. An item is a list of texts; its output repeats the first of them. */
interface Case {
  readonly items: readonly (readonly string[])[]
  readonly maxBatchSize: number
  readonly maxParallel: number
  readonly count: number | undefined
  /** Items whose call fails. */
  readonly failing: readonly number[]
  readonly hasDefault: boolean
  readonly gather: PlanForEach['gather']
  /** How many texts each item makes; one for all with Stack. */
  readonly made: readonly number[]
  /** Which of the open calls is ended next. */
  readonly order: readonly number[]
}

const cases: Arbitrary<Case> = record({
  perItem: nat({ max: 2 }),
  gather: constantFrom('Stack', 'Concat'),
}).chain(({ perItem, gather }) =>
  record({
    items: array(array(string({ maxLength: 3 }), { minLength: perItem, maxLength: perItem }), {
      maxLength: 12,
    }),
    maxBatchSize: nat({ max: 4 }),
    maxParallel: integer({ min: 1, max: 4 }),
    count: option(nat({ max: 13 }), { nil: undefined }),
    failing: oneof(constant([]), array(nat({ max: 12 }), { maxLength: 2 })),
    hasDefault: boolean(),
    gather: constant(gather),
    made: array(nat({ max: 3 }), { minLength: 12, maxLength: 12 }),
    order: array(nat({ max: 100 }), { minLength: 12, maxLength: 12 }),
  }),
)

function texts(name: string, values: readonly string[], shape: readonly number[]): NamedTensor {
  const data = encodeBytesTensor(values.map((one) => new TextEncoder().encode(one)))
  return { name, datatype: 'BYTES', shape, data }
}

/** The extent that an item makes. A batch has one for all its rows. */
function madeBy({ gather, made, maxBatchSize }: Case, item: number): number {
  if (gather === 'Stack') return 2
  return made[maxBatchSize === 0 ? item : item - (item % maxBatchSize)] ?? 0
}

/** Computes the answer item by item: the values of each, or the items of the failures of which one ends it. */
function interpret(o: Case) {
  const { items, count = items.length, failing, maxBatchSize: batch } = o
  if (count > items.length || count > 10) return { error: true }
  const isFailed = (item: number): boolean => {
    const first = batch === 0 ? item : item - (item % batch)
    const rows = batch === 0 ? 1 : Math.min(batch, count - first)
    return failing.some((one) => one >= first && one < first + rows && one < count)
  }
  const taken = items.slice(0, count)
  if (!o.hasDefault && taken.some((_, item) => isFailed(item))) return { error: true }
  const failed = taken.map((_, item) => isFailed(item))
  const values = taken.map((item, i) =>
    failed[i] === true
      ? ['-', '-']
      : Array.from({ length: madeBy(o, i) }, () => `${i}${item.join('+')}`),
  )
  return { values, failed }
}

/** Runs the wrapper, and answers the calls in the order that the case says. */
function execute(o: Case) {
  const { items, maxBatchSize, gather, count } = o
  const perItem = items[0]?.length ?? 1
  const value = { datatype: 'BYTES', shape: [2], data: texts('', ['-', '-'], [2]).data } as const
  const forEach: PlanForEach = {
    items: ['X', 'I'],
    maxItems: 10,
    maxParallel: o.maxParallel,
    gather,
    itemDefault: o.hasDefault ? new Map([['Y', value]]) : undefined,
    ...(count !== undefined && { count: 'n' }),
  }
  const numbers = new Uint8Array(Int32Array.from(items.keys()).buffer)
  const rig = createRepeatRig({
    model: `max_batch_size: ${maxBatchSize} input { name: "X" data_type: TYPE_STRING dims: [ -1 ] }
      output { name: "Y" data_type: TYPE_STRING dims: [ -1 ] }`,
    inputs: [
      texts('X', items.flat(), [items.length, perItem]),
      { name: 'I', datatype: 'INT32', shape: [items.length], data: numbers },
    ],
    controls:
      count === undefined
        ? []
        : [{ name: 'n', datatype: 'UINT8', shape: [], data: Uint8Array.of(count) }],
    wanted: ['Y', ...(o.hasDefault ? ['failed'] : []), ...(gather === 'Concat' ? ['lengths'] : [])],
    wrap: (next) => withForEach(forEach, next),
  })
  const open = new Set<RepeatedCall>()
  let taken = 0
  for (const pick of o.order) {
    for (; taken < rig.calls.length; taken++) open.add(rig.calls[taken] as RepeatedCall)
    if (open.size > o.maxParallel) throw new Error('too many calls are open')
    const call = [...open][pick % Math.max(1, open.size)]
    if (call === undefined) break
    open.delete(call)
    end(call, o)
  }
  return rig
}

function end(call: RepeatedCall, o: Case): void {
  const [x, numbers] = call.request.inputs
  const isBatched = o.maxBatchSize > 0
  const rows = isBatched ? (x?.shape[0] ?? 0) : 1
  const view = numbers?.data.slice().buffer ?? new ArrayBuffer(0)
  const indexes = [...new Int32Array(view)]
  if (indexes.some((item) => o.failing.includes(item))) {
    return call.fail(new ServeError('ENGINE_FAILED', 'broken'), 'maybe')
  }
  const words = decode(x)
  const perItem = words.length / rows
  const extent = madeBy(o, indexes[0] ?? 0)
  const values = indexes.flatMap((item, row) => {
    const own = words.slice(row * perItem, (row + 1) * perItem)
    return Array.from({ length: extent }, () => `${item}${own.join('+')}`)
  })
  call.answer([texts('Y', values, isBatched ? [rows, extent] : [extent])])
}

function decode(tensor: NamedTensor | undefined): readonly string[] {
  const { data = new Uint8Array() } = tensor ?? {}
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const found: string[] = []
  for (let at = 0; at < data.byteLength; ) {
    const length = view.getUint32(at, true)
    found.push(new TextDecoder().decode(data.subarray(at + 4, at + 4 + length)))
    at += 4 + length
  }
  return found
}

/** Compares an answer with that of the interpreter. */
function compare(
  o: Case,
  { values = [], failed = [], error }: ReturnType<typeof interpret>,
  answer: ReturnType<typeof execute>['answer'],
): void {
  deepStrictEqual(answer?.error !== undefined, error === true)
  if (error === true) return
  const outputs = new Map(answer?.outputs.map((output) => [output.name, output]))
  deepStrictEqual(decode(outputs.get('Y')), values.flat())
  deepStrictEqual(outputs.get('Y')?.shape, shapeOf(o, values))
  if (o.hasDefault) deepStrictEqual(bytesOf(outputs.get('failed')), Uint8Array.from(failed, Number))
  if (o.gather === 'Stack') return
  const lengths = new BigInt64Array(bytesOf(outputs.get('lengths')).buffer)
  deepStrictEqual(
    [...lengths].map(Number),
    values.map(({ length }) => length),
  )
}

/** The shape of what was gathered. */
function shapeOf({ gather }: Case, values: readonly (readonly string[])[]): readonly number[] {
  if (gather === 'Concat') return [values.flat().length]
  return [values.length, values.length === 0 ? 0 : 2]
}

function bytesOf(tensor: NamedTensor | undefined): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(tensor?.data ?? [])
}

await t.test('a step for each item gives what each item alone would', async (t) => {
  let errors = 0
  t.doesNotThrow(() =>
    assert(
      property(cases, (o) => {
        const rig = execute(o)
        const wanted = interpret(o)
        deepStrictEqual(rig.answers, 1)
        deepStrictEqual(rig.left, [0, 0, 0, 0])
        if (wanted.error === true) errors += 1
        compare(o, wanted, rig.answer)
      }),
      { numRuns: 600 },
    ),
  )
  t.ok(errors > 20 && errors < 500)
})
