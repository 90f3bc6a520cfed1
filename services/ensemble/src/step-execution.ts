import { ServeError } from '@tutti/errors'
import type { RequestContext } from '@tutti/tensor'
import type { PlanStep } from './ensemble-plan.ts'
import type { RunEvent, StepInput } from './ensemble-run.ts'
import type { Iteration } from './held-tensors.ts'
import { convertBatch } from './shape-conversion.ts'

type StepResponded = Extract<RunEvent, { type: 'StepResponded' }>

/** One execution of a step in one iteration, over all its attempts. */
export interface StepExecution {
  readonly step: PlanStep
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
  step: PlanStep,
  iteration: Iteration,
  request: RequestContext,
): StepExecution {
  const inputs: StepInput[] = []
  let context: RequestContext | undefined
  for (const { name, tensor, dims } of step.inputs) {
    const held = iteration.tensors[tensor]
    // Where steps disagree about the sequence, the first input that a step made decides.
    context ??= held?.context
    const entry = held?.entry ?? null
    if (held === undefined || entry === null) continue
    const { ref, datatype } = entry
    const isSame = held.isBatched === step.isBatched
    const shape = isSame
      ? entry.shape
      : convertBatch(entry.shape, { dims, isBatched: step.isBatched })
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

/** False for a response that only says that the execution has ended (triton-semantics 1.9). */
export function carriesOutputs(execution: StepExecution, response: StepResponded): boolean {
  if (!response.final || response.outputs.size > 0) return true
  return !execution.step.decoupled && execution.responses === 0
}

/** @throws ServeError RESPONSE_INVALID for a response that was lost, came twice, or is one too many. */
export function checkResponse(execution: StepExecution, response: StepResponded): void {
  const { step, responses } = execution
  let problem: string
  if (response.index !== responses) {
    problem = `got response ${response.index}, want response ${responses}`
  } else if (!step.decoupled && responses > 0 && carriesOutputs(execution, response)) {
    problem = 'got a second response, want one because the model is not decoupled'
  } else return
  throw new ServeError('RESPONSE_INVALID', `model '${step.model}': ${problem}`)
}
