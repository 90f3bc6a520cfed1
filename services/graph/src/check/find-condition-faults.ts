import type { GraphStep } from '../graph.ts'
import { checkCondition, readTensors } from './check-condition.ts'
import type { Checked, ConditionFault } from './condition-fault.ts'
import { absenceFaults } from './find-absence-faults.ts'
import {
  answerFaults,
  constantFaults,
  defaultFaults,
  parameterFaults,
} from './find-value-faults.ts'

/** Finds every broken rule of conditions, constants and absent tensors. What cannot be told yet is left out. */
export function findConditionFaults(o: Checked): readonly ConditionFault[] {
  const { graph } = o
  return [
    ...graph.steps.flatMap((step, index) => [
      ...conditionFaults(o, step, index),
      ...constantFaults(o, step, index),
      ...parameterFaults(step, index),
      ...answerFaults(o, step, index),
    ]),
    ...defaultFaults(o),
    ...absenceFaults(o),
  ]
}

function* conditionFaults(
  { config, graph, definitions }: Checked,
  step: GraphStep,
  index: number,
): Generator<ConditionFault> {
  const { when } = step
  if (when === undefined) return
  const at = { step: index, field: 'when' }
  if (config.max_batch_size > 0) {
    const got = `a condition in an Ensemble with batches of up to ${config.max_batch_size}`
    const want = 'maxBatchSize 0: the rows of a batch may differ in it'
    yield { reason: 'ConditionInvalid', at, got, want }
    return
  }
  yield* checkCondition(at, when, readTensors(when, step, { graph, definitions }))
}
