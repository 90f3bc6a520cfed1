import { type Datatype, formatShape, fromConfigDatatype, type Shape } from '@tutti/tensor'
import { compileCondition, MAX_CONDITION_ELEMENTS, tensorsOfCondition } from '../conditions.ts'
import { type Graph, type GraphStep, tensorName } from '../graph.ts'
import type { ConditionFault, Place } from './condition-fault.ts'
import type { TensorDefinitions } from './find-tensor-faults.ts'

/** Finds the datatypes of the tensors that a condition reads, by the names that they have there. */
export function datatypesOf(
  graph: Graph,
  controls: NonNullable<GraphStep['controls']>,
  definitions: TensorDefinitions,
): ReadonlyMap<string, Datatype> {
  return new Map(
    controls.flatMap(({ name, from }): [string, Datatype][] => {
      const { dataType = '' } = definitions.get(tensorName(graph, from)) ?? {}
      const datatype = fromConfigDatatype(dataType)
      return datatype === undefined ? [] : [[name, datatype]]
    }),
  )
}

/** A tensor that a condition reads, as it is declared. */
export interface ReadTensor {
  readonly name: string
  /** Undefined if it is not known. */
  readonly datatype: Datatype | undefined
  readonly shape: Shape
}

/** Lists the tensors of the graph that a condition reads, as far as they are known. */
export function readTensors(
  text: string,
  { controls = [] }: Pick<GraphStep, 'controls'>,
  o: { readonly graph: Graph; readonly definitions: TensorDefinitions },
): readonly ReadTensor[] {
  const names = tensorsOfCondition(text)
  const read = controls.filter(({ name }) => names.includes(name))
  const datatypes = datatypesOf(o.graph, read, o.definitions)
  return read.map(({ name, from }) => {
    const shape = o.definitions.get(tensorName(o.graph, from))?.fullDims ?? []
    return { name, datatype: datatypes.get(name), shape }
  })
}

/** Finds what is wrong with a condition: its text, its types, and tensors that are too large whatever their open extents are. */
export function* checkCondition(
  at: Place,
  text: string,
  tensors: readonly ReadTensor[],
): Generator<ConditionFault> {
  const reason = 'ConditionInvalid'
  const datatypes = tensors.flatMap(({ name, datatype }) =>
    datatype === undefined ? [] : [[name, datatype] as const],
  )
  try {
    compileCondition(text, new Map(datatypes))
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    yield { reason, at, got: `'${text}': ${problem}`, want: 'a condition in CEL' }
  }
  for (const { name, shape } of tensors) {
    const least = shape.reduce((count, extent) => count * Math.max(1, extent), 1)
    if (least <= MAX_CONDITION_ELEMENTS) continue
    const got = `tensors["${name}"] of the shape ${formatShape(shape)}`
    yield { reason, at, got, want: `at most ${MAX_CONDITION_ELEMENTS} elements` }
  }
}
