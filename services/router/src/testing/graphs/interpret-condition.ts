import type { Texts, Values } from './scripted-models.ts'
import { type Condition, type Ref, readsOf, type Value } from './sketch.ts'

/** Most elements of a tensor that a condition reads. */
const MAX_ELEMENTS = 64

/** The tensors and parameters that a condition may read. */
export interface Scope {
  readonly tensors: Values
  readonly parameters: Texts
}

/** Evaluates a condition. @returns undefined if it has no value. */
export function evaluate(condition: Condition, o: Scope): boolean | undefined {
  const isReadable = (ref: Ref): boolean => {
    const { values } = o.tensors.get(ref) ?? {}
    return values !== undefined && values.length <= MAX_ELEMENTS && !values.some(Number.isNaN)
  }
  return readsOf(condition).every(isReadable) ? valueOf(condition, o) : undefined
}

type Kind = Condition['kind']
type Of<K extends Kind> = Extract<Condition, { readonly kind: K }>

/** How each kind of condition gets its value. */
const VALUES: { readonly [K in Kind]: (condition: Of<K>, o: Scope) => boolean | undefined } = {
  not: ({ of }, o) => {
    const value = valueOf(of, o)
    return value === undefined ? undefined : !value
  },
  and: ({ of }, o) => joined(of, false, o),
  or: ({ of }, o) => joined(of, true, o),
  has: ({ name }, { parameters }) => parameters.has(name),
  parameter: ({ name, value: wanted }, { parameters }) => {
    const value = parameters.get(name)
    return value === undefined ? undefined : value === wanted
  },
  size: ({ ref, least }, o) => (o.tensors.get(ref)?.values.length ?? 0) >= least,
  divide: (condition, o) => {
    const divisor = Number(elementOf(condition, o) ?? 0)
    return divisor === 0 ? undefined : Math.trunc(6 / divisor) > 2
  },
  compare: (condition, o) => {
    const { operator, literal } = condition
    const element = elementOf(condition, o)
    if (element === undefined) return undefined
    if (operator === '==') return element === literal
    return operator === '<' ? element < literal : element > literal
  },
}

function valueOf(condition: Condition, o: Scope): boolean | undefined {
  const value: (condition: never, o: Scope) => boolean | undefined = VALUES[condition.kind]
  return value(condition as never, o)
}

/** One of both decides even if the other one has no value. */
function joined(of: readonly Condition[], deciding: boolean, o: Scope): boolean | undefined {
  const values = of.map((one) => valueOf(one, o))
  if (values.includes(deciding)) return deciding
  return values.includes(undefined) ? undefined : !deciding
}

function elementOf(
  { ref, index }: { readonly ref: Ref; readonly index: number },
  { tensors }: Scope,
): Value['values'][number] | undefined {
  return tensors.get(ref)?.values[index]
}
