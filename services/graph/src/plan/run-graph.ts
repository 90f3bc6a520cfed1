import { ServeError } from '@tutti/errors'
import type { EnsemblePlan, PlanEnsembleTensor, RunGraph } from './ensemble-plan.ts'

/**
 * Selects the part of a plan that the requested outputs need: the steps from which one of the outputs can be reached.
 *
 * @param names - a name given twice counts once.
 * @throws ServeError INVALID_REQUEST, Triton's text, for a name that is no output.
 * @see triton-semantics 1.5
 */
export function selectOutputs(plan: EnsemblePlan, names: readonly string[]): RunGraph {
  const wanted = new Set(names)
  const outputs = plan.outputs.filter((output) => wanted.delete(output.name))
  const [unknown] = wanted
  if (unknown !== undefined) {
    const message = `unexpected inference output '${unknown}' for model '${plan.name}'`
    throw new ServeError('INVALID_REQUEST', message, { details: { ensemble: plan.name } })
  }
  return outputs.length === plan.outputs.length ? plan.whole : runGraph(plan, outputs)
}

/** Builds the graph that a request for some of a plan's outputs executes. */
export function runGraph(
  plan: Pick<EnsemblePlan, 'steps' | 'tensors'>,
  outputs: readonly PlanEnsembleTensor[],
): RunGraph {
  const needed = neededSteps(plan, outputs)
  const given = new Set(outputs.flatMap(({ tensors }) => tensors))
  const outputLabel = plan.tensors[outputs[0]?.tensors[0] ?? -1]?.label ?? 0
  const steps = plan.steps.filter((step) => needed.has(step.index))
  const consumers = plan.tensors.map((_, tensor) =>
    steps.filter((step) => step.reads.includes(tensor)).map((step) => step.index),
  )
  const work: number[] = []
  for (const label of [...steps.map((step) => step.label), outputLabel]) {
    work[label] = (work[label] ?? 0) + 1
  }
  return {
    consumers,
    uses: consumers.map((list, tensor) => list.length + (given.has(tensor) ? 1 : 0)),
    pending: plan.steps.map(
      ({ reads, dependsOn }) =>
        reads.length + dependsOn.filter((other) => needed.has(other)).length,
    ),
    dependents: plan.steps.map(({ index }) =>
      steps.filter((step) => step.dependsOn.includes(index)).map((step) => step.index),
    ),
    outputs,
    given: [...given],
    outputLabel,
    work,
  }
}

/** Walks from the outputs back to the ensemble's inputs. */
function neededSteps(
  plan: Pick<EnsemblePlan, 'steps' | 'tensors'>,
  outputs: readonly PlanEnsembleTensor[],
): ReadonlySet<number> {
  const steps = new Set<number>()
  const tensors = new Set(outputs.flatMap((output) => output.tensors))
  for (const tensor of tensors) {
    const step = plan.tensors[tensor]?.step
    if (step === undefined) continue
    steps.add(step)
    for (const read of plan.steps[step]?.reads ?? []) tensors.add(read)
  }
  return steps
}
