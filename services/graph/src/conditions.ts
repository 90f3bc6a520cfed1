import {
  type CompiledCondition,
  Condition,
  type Elements,
  type ElementType,
  type ParameterValue,
} from '@tutti/cel'
import { ServeError } from '@tutti/errors'
import {
  type Datatype,
  decodeBytesTensor,
  elementCount,
  formatShape,
  type NamedTensor,
  NUMBER_READERS,
  type Parameters,
} from '@tutti/tensor'

/** A compiled condition. */
export type StepCondition = Pick<CompiledCondition, 'evaluate' | 'tensors'>

/** Most elements of a tensor that a condition reads. */
export const MAX_CONDITION_ELEMENTS = 64

/** Most bytes of a tensor of texts that a condition reads. */
export const MAX_CONDITION_BYTES = 65_536

/** The types that the elements of tensors have in conditions. */
const ELEMENT_TYPES: Readonly<Record<Datatype, ElementType>> = {
  BOOL: 'bool',
  UINT8: 'uint',
  UINT16: 'uint',
  UINT32: 'uint',
  UINT64: 'uint',
  INT8: 'int',
  INT16: 'int',
  INT32: 'int',
  INT64: 'int',
  FP16: 'double',
  BF16: 'double',
  FP32: 'double',
  FP64: 'double',
  BYTES: 'string',
}

/** Lists the names of the tensors that a condition reads; none for a text that is no condition. */
export function tensorsOfCondition(text: string): readonly string[] {
  try {
    return new Condition(text).tensors
  } catch {
    // The checker says what is wrong with it.
    return []
  }
}

/**
 * Compiles a condition.
 *
 * @param datatypes - of the tensors, by their names in the condition, as far as they are known.
 * @throws Error that says in one line what is wrong.
 */
export function compileCondition(
  text: string,
  datatypes: ReadonlyMap<string, Datatype>,
): CompiledCondition {
  const types = [...datatypes].map(([name, datatype]) => [name, ELEMENT_TYPES[datatype]] as const)
  return new Condition(text).compile(new Map(types))
}

/**
 * Evaluates the condition of a step.
 *
 * @param o.step - name of the step, for the error.
 * @param o.tensors - by the names that they have in conditions; one that is absent is left out, and those that the condition does not name are not read.
 * @throws ServeError CONDITION_FAILED if it has no value.
 */
export function holds(
  condition: StepCondition,
  o: {
    readonly step: string
    readonly tensors: readonly NamedTensor[]
    readonly parameters: Parameters
  },
): boolean {
  try {
    const parameters = new Map(
      [...o.parameters].map(([name, { value }]): [string, ParameterValue] => [name, value]),
    )
    // Others, which `count` or `until` reads, may be large.
    const read = o.tensors.filter(({ name }) => condition.tensors.includes(name))
    const tensors = new Map(read.map((tensor) => [tensor.name, toElements(tensor)]))
    return condition.evaluate({ tensors, parameters })
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    const text = `the condition of step '${o.step}' has no value: ${problem}`
    throw new ServeError('CONDITION_FAILED', text, { details: { step: o.step } })
  }
}

/** @throws Error for a tensor that is too large, or text that is no UTF-8. */
function toElements({ name, datatype, shape, data }: NamedTensor): Elements {
  const count = elementCount(shape)
  if (count > MAX_CONDITION_ELEMENTS) {
    throw new Error(
      `tensors["${name}"] has the shape ${formatShape(shape)}, want at most ${MAX_CONDITION_ELEMENTS} elements`,
    )
  }
  if (datatype === 'BYTES') return toTexts(name, data)
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const read = NUMBER_READERS[datatype]
  return Array.from({ length: count }, (_, i) => {
    const value = read?.(view, i) ?? 0
    if (datatype === 'BOOL') return value !== 0
    return ELEMENT_TYPES[datatype] === 'double' ? Number(value) : BigInt(value)
  })
}

function toTexts(name: string, data: Uint8Array): readonly string[] {
  if (data.byteLength > MAX_CONDITION_BYTES) {
    throw new Error(
      `tensors["${name}"] has ${data.byteLength} bytes, want at most ${MAX_CONDITION_BYTES}`,
    )
  }
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  return decodeBytesTensor(data).map((element, i) => {
    try {
      return decoder.decode(element)
    } catch {
      throw new Error(`tensors["${name}"][${i}] is no UTF-8`)
    }
  })
}
