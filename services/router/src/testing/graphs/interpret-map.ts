import { askedOf, gather, inItem, type Made, type Place } from './interpret-gather.ts'
import {
  type Answer,
  type Asked,
  answered,
  type End,
  type Fault,
  failed,
  faultOf,
  firstFailure,
  type Once,
  onlyOf,
  type StepCallSketch,
} from './interpretation.ts'
import { rowOf, stack, type Values } from './scripted-models.ts'
import type { CalleeSketch, ForEachSketch, Value } from './sketch.ts'

/** A step for each item, and what it runs. */
interface Mapping {
  readonly call: StepCallSketch
  readonly forEach: ForEachSketch
  readonly callee: CalleeSketch
  readonly asked: Asked
  readonly once: Once
}

/** Computes a step for each item, call by call, in the order of the items. */
export function interpretMap(map: Mapping): Answer {
  const { call, asked } = map
  const { o } = call
  const counted = countItems(map)
  if (typeof counted !== 'number') return failed(asked.at, { ...counted, executed: 'no' })
  const mark = o.mark()
  const { made, ends } = callAll(map, counted)
  const first = map.forEach.itemDefault === undefined ? firstFailure(ends) : undefined
  if (first?.fault !== undefined) {
    if (first.at < Number.POSITIVE_INFINITY) o.cut(mark, first.at)
    return failed(first.at, first.fault)
  }
  const at = Math.max(asked.at, ...ends.map((end) => end.at))
  if (at === Number.POSITIVE_INFINITY) return failed(at, faultOf('', 'it never ends'))
  const gathered = gather({ ...map, name: call.step.name, made, asked: asked.outputs })
  return 'reason' in gathered ? failed(at, gathered) : answered(at, gathered)
}

/** Calls for the items, so many at a time. */
function callAll(
  map: Mapping,
  count: number,
): { readonly made: readonly Made[]; readonly ends: readonly End[] } {
  const { call, forEach, callee, asked } = map
  const batch = callee.kind === 'model' ? Math.max(1, callee.maxBatchSize) : 1
  const calls = Math.ceil(count / batch)
  const free = Array.from({ length: Math.min(forEach.maxParallel, calls) }, () => asked.at)
  const made: Made[] = []
  const ends: End[] = []
  call.o.parallel += free.length > 1 ? 1 : 0
  for (let index = 0; index < calls; index += 1) {
    const at = Math.min(...free)
    // All that are open never end.
    if (at === Number.POSITIVE_INFINITY) break
    const first = index * batch
    const place = { first, rows: Math.min(batch, count - first) }
    const { end, outputs } = callOne(map, place, at)
    // After a failure that ends the step nothing begins.
    const isLast = end.fault !== undefined && forEach.itemDefault === undefined
    free[free.indexOf(at)] = isLast ? Number.POSITIVE_INFINITY : end.at
    ends.push(end)
    made.push({ ...place, outputs })
  }
  call.o.parallel -= free.length > 1 ? 1 : 0
  return { made, ends }
}

function callOne(
  map: Mapping,
  place: Place,
  at: number,
): { readonly end: End; readonly outputs: Values | undefined } {
  const { call, asked, once } = map
  const outputs = askedOf({ ...map, asked: asked.outputs })
  const { response, fault, end } = onlyOf(once({ ...asked, inputs: cut(map, place), outputs, at }))
  const absent = outputs.find((name) => response?.has(name) !== true)
  const problem =
    absent === undefined
      ? undefined
      : faultOf('ITEMS_INVALID', "output '*' is absent, want it of every item")
  const broken = fault ?? problem
  if (broken === undefined) return { end: { at: end }, outputs: response }
  return { end: { at: end, fault: inItem(call.step.name, place, broken) }, outputs: undefined }
}

/** Counts the items. @returns what is wrong with them, if something is. */
function countItems({ call, forEach, asked }: Mapping): number | Fault {
  const { step, controls } = call
  const items = step.inputs.filter(({ isItem }) => isItem)
  const extents = items.flatMap(({ name }) => asked.inputs.get(name)?.shape[0] ?? [])
  const [there = 0] = extents
  const wrong = (text: string): Fault => faultOf('ITEMS_INVALID', `step '${step.name}': ${text}`)
  const odd = extents.find((one) => one !== there)
  if (odd !== undefined) {
    return wrong(`got ${there} items in '*' and ${odd} in '*', want as many in both`)
  }
  const { count: ref, maxItems } = forEach
  const count = ref === undefined ? there : controls.get(ref)?.values[0]
  if (count === undefined) return wrong(`the count '${ref}' is absent, want it`)
  const number = Number(count)
  if (number < 0 || number > there) {
    return wrong(`the count '${ref}' is ${number}, want 0 to ${there}, the number of items`)
  }
  if (number <= maxItems) return number
  return wrong(`got ${number} items, want at most ${maxItems} (maxItems)`)
}

/** Makes the inputs of one call. */
function cut({ call, callee, asked }: Mapping, { first, rows }: Place): Values {
  const isBatched = callee.kind === 'model' && callee.maxBatchSize > 0
  const made = [...asked.inputs].map(([name, value]): [string, Value] => {
    const isItem = call.step.inputs.some((one) => one.name === name && one.isItem)
    const parts = Array.from({ length: rows }, (_, i) => (isItem ? rowOf(value, first + i) : value))
    const [only = value] = parts
    return [name, isBatched ? stack(parts, value.datatype, only.shape) : only]
  })
  return new Map(made)
}
