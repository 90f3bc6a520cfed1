import { ServeError } from '@tutti/errors'
import type { EnsemblePlan, PlanEnsembleTensor, PlanStep } from './ensemble-plan.ts'

/** A needed step with what the run looks up on every event. */
export interface GraphStep {
  readonly plan: PlanStep
  readonly isBatched: boolean
  /** Each tensor that the step reads, once. */
  readonly reads: readonly number[]
  /** All keys of the output map: Triton asks for them even if one of them is not needed. */
  readonly requestedOutputs: readonly string[]
}

/** The part of a plan that one set of requested outputs needs. Everything is indexed by step or tensor. */
export interface RunGraph {
  /** Undefined where a step is not needed. */
  readonly steps: readonly (GraphStep | undefined)[]
  /** Needed steps that read each tensor, ascending. */
  readonly consumers: readonly (readonly number[])[]
  /** References to each tensor: its needed consumers, and the response. */
  readonly uses: readonly number[]
  /** Needed steps that each step waits for beside what it reads. */
  readonly dependsOn: readonly (readonly number[])[]
  /** The reverse. */
  readonly dependents: readonly (readonly number[])[]
  readonly hasDependencies: boolean
  /** How many tensors and steps each step waits for. */
  readonly pending: readonly number[]
  /** Position in `EnsemblePlan.outputs` of the requested output that each tensor is; -1 if none. */
  readonly outputOf: readonly number[]
  readonly outputs: readonly PlanEnsembleTensor[]
  /** The label of the requested outputs; unless 0, the ensemble answers once per response of that decoupled step. */
  readonly outputLabel: number
}

/** Plans are immutable, and most requests want all outputs. */
const COMPLETE = new WeakMap<EnsemblePlan, RunGraph>()

/**
 * Selects what is needed for the requested outputs: the steps from which one of them can be reached.
 *
 * @param requestedOutputs - empty means all; a name given twice counts once.
 * @throws ServeError INVALID_REQUEST, Triton's text, for a name that is no output.
 * @see triton-semantics 1.5
 */
export function runGraph(plan: EnsemblePlan, requestedOutputs: readonly string[]): RunGraph {
  if (requestedOutputs.length > 0) return buildGraph(plan, requested(plan, requestedOutputs))
  const known = COMPLETE.get(plan)
  if (known !== undefined) return known
  const graph = buildGraph(plan, plan.outputs)
  COMPLETE.set(plan, graph)
  return graph
}

function requested(plan: EnsemblePlan, names: readonly string[]): readonly PlanEnsembleTensor[] {
  const wanted = new Set(names)
  const outputs = plan.outputs.filter((output) => wanted.delete(output.name))
  for (const name of wanted) {
    throw new ServeError(
      'INVALID_REQUEST',
      `unexpected inference output '${name}' for model '${plan.name}'`,
      { details: { ensemble: plan.name } },
    )
  }
  return outputs
}

function buildGraph(plan: EnsemblePlan, outputs: readonly PlanEnsembleTensor[]): RunGraph {
  const needed = neededSteps(plan, outputs)
  const steps = plan.steps.map((step) => (needed.has(step.index) ? graphStep(step) : undefined))
  const outputOf = plan.tensors.map(() => -1)
  for (const [position, output] of outputs.entries()) outputOf[output.tensor] = position
  const consumers = plan.tensors.map((tensor) => [
    ...new Set(tensor.consumers.map(({ step }) => step).filter((step) => needed.has(step))),
  ])
  const dependsOn = steps.map(
    (step) => step?.plan.dependsOn.filter((other) => needed.has(other)) ?? [],
  )
  return {
    steps,
    consumers,
    uses: consumers.map((list, tensor) => list.length + (outputOf[tensor] === -1 ? 0 : 1)),
    dependsOn,
    dependents: steps.map((_, index) =>
      steps.flatMap((_step, other) => (dependsOn[other]?.includes(index) ? [other] : [])),
    ),
    hasDependencies: dependsOn.some((list) => list.length > 0),
    pending: steps.map(
      (step, index) => (step?.reads.length ?? 0) + (dependsOn[index]?.length ?? 0),
    ),
    outputOf,
    outputs,
    outputLabel: plan.tensors[outputs[0]?.tensor ?? -1]?.label ?? 0,
  }
}

/** Walks from the outputs back to the ensemble's inputs. */
function neededSteps(
  plan: EnsemblePlan,
  outputs: readonly PlanEnsembleTensor[],
): ReadonlySet<number> {
  const steps = new Set<number>()
  const tensors = new Set(outputs.map((output) => output.tensor))
  for (const tensor of tensors) {
    const step = plan.tensors[tensor]?.producer?.step
    if (step === undefined || steps.has(step)) continue
    steps.add(step)
    for (const input of plan.steps[step]?.inputs ?? []) tensors.add(input.tensor)
  }
  return steps
}

function graphStep(plan: PlanStep): GraphStep {
  return {
    plan,
    isBatched: plan.maxBatchSize > 0,
    reads: [...new Set(plan.inputs.map((input) => input.tensor))],
    requestedOutputs: plan.outputs.map((output) => output.name),
  }
}
