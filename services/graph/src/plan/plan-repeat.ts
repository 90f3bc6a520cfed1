import { assert } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { encodeElements, fromConfigDatatype, type TensorValue } from '@tutti/tensor'
import { datatypesOf } from '../check/check-condition.ts'
import type { TensorDefinitions } from '../check/find-tensor-faults.ts'
import { compileCondition } from '../conditions.ts'
import type { ForEach, Graph, GraphStep } from '../graph.ts'
import type { PlanForEach, PlanLoop } from './ensemble-plan.ts'

/** Compiles how a step runs for each item. */
export function planForEach({ itemDefault, ...forEach }: ForEach): PlanForEach {
  if (itemDefault === undefined) return { ...forEach, itemDefault }
  const values = Object.entries(itemDefault).map(([name, { datatype, shape, value }]) => {
    return [name, { datatype, shape, data: encodeElements(datatype, value) }] as const
  })
  return { ...forEach, itemDefault: new Map<string, TensorValue>(values) }
}

/** Compiles how a step runs again. @throws Error for a condition that does not compile, which the checker has refused. */
export function planLoop(
  { loop, controls = [] }: GraphStep,
  o: {
    readonly graph: Graph
    readonly definitions: TensorDefinitions
    readonly model: ModelConfig | undefined
  },
): PlanLoop {
  assert(loop !== undefined, 'a loop to plan')
  const { until, reads } = loop
  if (until === undefined) return { ...loop, until }
  const own = reads.flatMap(({ name, output }) => {
    const made = o.model?.output.find((one) => one.name === output)
    const datatype = fromConfigDatatype(made?.data_type ?? '')
    return datatype === undefined ? [] : [[name, datatype] as const]
  })
  const others = datatypesOf(o.graph, controls, o.definitions)
  return { ...loop, until: compileCondition(until, new Map([...others, ...own])) }
}
