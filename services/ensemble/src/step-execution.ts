import { ServeError } from '@tutti/errors'
import type { RequestContext } from '@tutti/tensor'
import type { RunAction, RunEvent, StepInput } from './ensemble-run.ts'
import type { Iteration } from './iteration.ts'
import type { GraphStep } from './run-graph.ts'
import { convertBatch } from './shape-conversion.ts'

type StepResponded = Extract<RunEvent, { type: 'StepResponded' }>

/** One execution of a step in one iteration, over all its attempts. */
export interface StepExecution {
  readonly step: GraphStep
  readonly iteration: Iteration
  readonly context: RequestContext
  readonly inputs: readonly StepInput[]
  /** The number of the attempt in flight, unique per step within the run. */
  attempt: number
  /** Attempts at this execution. */
  tries: number
  /** Responses so far, an empty final one included. */
  responses: number
}

/** Gathers what a step that is ready reads. Its tensors stay held until the execution has ended. */
export function newExecution(
  step: GraphStep,
  iteration: Iteration,
  request: RequestContext,
): StepExecution {
  const inputs: StepInput[] = []
  let context: RequestContext | undefined
  for (const { name, tensor, dims } of step.plan.inputs) {
    const held = iteration.tensors[tensor]
    // Where steps disagree about the sequence, the first input that a step made decides.
    context ??= held?.context
    const entry = held?.entry ?? null
    if (held === undefined || entry === null) continue
    const { ref, datatype } = entry
    const shape = convertBatch(entry.shape, held.isBatched, { dims, isBatched: step.isBatched })
    inputs.push({ name, ref, datatype, shape })
  }
  return {
    step,
    iteration,
    context: context ?? request,
    inputs,
    attempt: 0,
    tries: 0,
    responses: 0,
  }
}

export function invocation(execution: StepExecution): RunAction {
  const { step, attempt, context, inputs } = execution
  return {
    type: 'InvokeStep',
    step: step.plan.index,
    attempt,
    context,
    inputs,
    requestedOutputs: step.requestedOutputs,
  }
}

/** False for a response that only says that the execution has ended (triton-semantics 1.9). */
export function carriesOutputs(execution: StepExecution, response: StepResponded): boolean {
  if (!response.final || response.outputs.size > 0) return true
  return !execution.step.plan.decoupled && execution.responses === 0
}

/** @throws ServeError RESPONSE_INVALID for a response that was lost, came twice, or is one too many. */
export function checkResponse(execution: StepExecution, response: StepResponded): void {
  const { plan } = execution.step
  if (response.index !== execution.responses) {
    throw new ServeError(
      'RESPONSE_INVALID',
      `model '${plan.model}': got response ${response.index}, want response ${execution.responses}`,
    )
  }
  if (plan.decoupled || execution.responses === 0) return
  if (carriesOutputs(execution, response)) {
    throw new ServeError(
      'RESPONSE_INVALID',
      `model '${plan.model}': got a second response, want one because the model is not decoupled`,
    )
  }
}
