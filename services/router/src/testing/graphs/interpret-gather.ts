import { type Fault, faultOf, located } from './interpretation.ts'
import { rowOf, stack, type Values } from './scripted-models.ts'
import type { CalleeSketch, ForEachSketch, Value } from './sketch.ts'

/** Items of a step. */
export interface Place {
  readonly first: number
  /** Number of items. */
  readonly rows: number
}

/** Values that one call of a map has made; none where it failed. */
export interface Made extends Place {
  readonly outputs: Values | undefined
}

export interface Gathering {
  /** Name of the step. */
  readonly name: string
  readonly forEach: ForEachSketch
  readonly callee: CalleeSketch
  readonly made: readonly Made[]
  readonly asked: readonly string[]
}

/** Names some items in a failure. */
export function inItem(step: string, { first, rows }: Place, fault: Fault): Fault {
  const item = rows === 1 ? String(first) : `${first}..${first + rows - 1}`
  return located(fault, `step '${step}[${item}]'`, item)
}

/** Lists the outputs that items are asked for. Where nothing but flags and lengths is read, the first output tells of them. */
export function askedOf({
  forEach,
  callee,
  asked,
}: Pick<Gathering, 'forEach' | 'callee' | 'asked'>): readonly string[] {
  const read = asked.filter((output) => !isMade(forEach, output))
  if (read.length > 0) return read
  const [first = callee.outputs[0]?.name ?? ''] = forEach.itemDefault?.keys() ?? []
  return [first]
}

function isMade({ itemDefault, gather }: ForEachSketch, output: string): boolean {
  return output === 'failed'
    ? itemDefault !== undefined
    : output === 'lengths' && gather === 'Concat'
}

/** Gathers what all items have made. @returns the fault of outputs that do not fit together. */
export function gather(o: Gathering): Values | Fault {
  const { forEach, asked } = o
  const fault = oneOf(findFaults(o))
  if (fault !== undefined) return fault
  return new Map(
    asked.map((output): [string, Value] => {
      if (!isMade(forEach, output)) return [output, join(o, output)]
      if (output === 'lengths') {
        const values = lengthsOf(o, askedOf(o)[0] ?? '')
        return [output, { datatype: 'INT64', shape: [values.length], values }]
      }
      const values = o.made.flatMap(({ rows, outputs }) =>
        Array.from({ length: rows }, () => outputs === undefined),
      )
      return [output, { datatype: 'BOOL', shape: [values.length], values }]
    }),
  )
}

function findFaults(o: Gathering): readonly Fault[] {
  const { forEach, asked } = o
  const lengths = forEach.gather === 'Stack' ? [] : unequalLengths(o)
  const read = asked.filter((output) => !isMade(forEach, output))
  return [...lengths, ...read.flatMap((output) => unequalShapes(o, output))]
}

/** Which of several outputs is told depends on the order in which they were written. */
function oneOf(faults: readonly Fault[]): Fault | undefined {
  const [first] = faults
  const isOne = faults.every(({ item }) => item === first?.item)
  return (
    first && {
      ...first,
      texts: faults.flatMap(({ texts }) => texts),
      ...(!isOne && { item: '*' }),
    }
  )
}

/** Lists the value of an output for each item. */
function partsOf({ made, forEach, callee }: Gathering, output: string): readonly Value[] {
  const isBatched = callee.kind === 'model' && callee.maxBatchSize > 0
  return made.flatMap(({ rows, outputs }): readonly Value[] => {
    const value = (outputs ?? forEach.itemDefault)?.get(output)
    if (value === undefined) return []
    const isWhole = outputs === undefined || !isBatched
    return Array.from({ length: rows }, (_, row) => (isWhole ? value : rowOf(value, row)))
  })
}

function join(o: Gathering, output: string): Value {
  const parts = partsOf(o, output)
  const port = o.callee.outputs.find(({ name }) => name === output)
  const { datatype = 'FP32', dims = [] } = port?.type ?? {}
  const shape = parts[0]?.shape ?? dims.map((extent) => Math.max(0, extent))
  if (o.forEach.gather === 'Stack') return stack(parts, datatype, shape)
  const [, ...rest] = shape
  const extent = parts.reduce((sum, part) => sum + (part.shape[0] ?? 0), 0)
  return { datatype, shape: [extent, ...rest], values: parts.flatMap(({ values }) => values) }
}

function unequalShapes(o: Gathering, output: string): readonly Fault[] {
  const { gather: how } = o.forEach
  const compared = ({ shape }: Value): string => (how === 'Stack' ? shape : shape.slice(1)).join()
  const parts = partsOf(o, output)
  const odd = parts.findIndex((part) => compared(part) !== compared(parts[0] ?? part))
  return notAlike(o, odd, `output '${output}' is *, want * for ${how}`)
}

/** Lists the extent along axis 0 of each item; 0 for one that failed, where nothing stands in for it. */
function lengthsOf({ made, forEach, callee }: Gathering, output: string): readonly number[] {
  const isBatched = callee.kind === 'model' && callee.maxBatchSize > 0
  return made.flatMap(({ rows, outputs }) => {
    const { shape = [] } = (outputs ?? forEach.itemDefault)?.get(output) ?? {}
    const extent = shape[outputs !== undefined && isBatched ? 1 : 0] ?? 0
    return Array.from({ length: rows }, () => extent)
  })
}

function unequalLengths(o: Gathering): readonly Fault[] {
  const lengths = askedOf(o).map((output) => lengthsOf(o, output))
  const [first = []] = lengths
  const odd = first.findIndex((length, item) => lengths.some((other) => other[item] !== length))
  return notAlike(o, odd, 'the extents along axis 0 of *, want one for Concat')
}

/** @param item - -1 for none. */
function notAlike({ name, made }: Gathering, item: number, text: string): readonly Fault[] {
  if (item === -1) return []
  const place = made.find(({ first, rows }) => item < first + rows) ?? { first: item, rows: 1 }
  return [inItem(name, place, faultOf('ITEMS_INVALID', text))]
}
