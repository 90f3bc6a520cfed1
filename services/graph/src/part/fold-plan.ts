import type { EnsemblePlan, PlanStep } from '../plan/ensemble-plan.ts'
import { runGraph } from '../plan/run-graph.ts'
import { nameTensor, tensorsOfPart } from './tensors-of-part.ts'

/** A plan in which parts stand in the place of their steps. */
export interface FoldedPlan {
  readonly plan: EnsemblePlan
  /** Indexes of the steps in the graph, by the index of the folded plan's step; several for a part. */
  readonly steps: readonly (readonly number[])[]
}

/**
 * Puts parts in the place of their steps: a part is a step that reads what its steps read of others, and makes what others need.
 *
 * @param parts - as `findParts` gives them.
 */
export function foldPlan(plan: EnsemblePlan, parts: readonly (readonly number[])[]): FoldedPlan {
  const partOf = new Map(parts.flatMap((steps) => steps.map((step) => [step, steps])))
  const groups = [...new Set(plan.steps.map(({ index }) => partOf.get(index) ?? [index]))]
  const folded = new Map(groups.flatMap((steps, i) => steps.map((step) => [step, i])))
  const indexOf = (step: number): number => folded.get(step) ?? -1
  const unordered = groups.map((steps) => {
    const [only] = steps.flatMap((step) => plan.steps[step] ?? [])
    return steps.length === 1 && only !== undefined ? only : foldSteps(plan, steps)
  })
  const steps = unordered.map((step, index): PlanStep => {
    const before = new Set(step.dependsOn.map(indexOf))
    before.delete(index)
    return { ...step, index, dependsOn: [...before] }
  })
  const tensors = plan.tensors.map((tensor) =>
    tensor.step === undefined ? tensor : { ...tensor, step: indexOf(tensor.step) },
  )
  const whole = runGraph({ steps, tensors }, plan.outputs)
  return { plan: { ...plan, steps, tensors, whole }, steps: groups }
}

/** Makes the step that stands for a part. */
function foldSteps(plan: EnsemblePlan, indexes: readonly number[]): PlanStep {
  const steps = indexes.flatMap((index) => plan.steps[index] ?? [])
  const { read, made } = tensorsOfPart(plan, indexes)
  const names = steps.map(({ name }) => name).join(', ')
  const outputs = made.map((tensor) => {
    return { name: nameTensor(tensor), tensor, isBatched: plan.tensors[tensor]?.isBatched ?? false }
  })
  return {
    index: -1,
    name: names,
    model: [...new Set(steps.map(({ model, builtin }) => builtin?.config.name ?? model))].join(
      ', ',
    ),
    builtin: undefined,
    version: -1,
    isBatched: false,
    decoupled: false,
    inputs: read.map((tensor) => {
      const name = nameTensor(tensor)
      return { name, tensors: [tensor], dims: [], optional: true, isAsMade: true }
    }),
    constants: [],
    outputs,
    controls: [],
    when: undefined,
    forEach: undefined,
    loop: undefined,
    parameters: undefined,
    optionalOutputs: new Set(outputs.map(({ name }) => name)),
    reads: read,
    outputNames: outputs.map(({ name }) => name),
    dependsOn: steps.flatMap(({ dependsOn }) => dependsOn),
    call: {},
    label: 0,
    part: { whole: plan, steps: indexes },
  }
}
