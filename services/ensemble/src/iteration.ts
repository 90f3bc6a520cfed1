import { ServeError } from '@tutti/errors'
import { EMPTY_CONTEXT, elementCount, type Parameters, type RequestContext } from '@tutti/tensor'
import type { PlanEnsembleTensor, PlanStep, RunGraph } from './ensemble-plan.ts'
import type { RunAction, RunEvent, StepInput, TensorEntry, TensorTable } from './ensemble-run.ts'
import { sequenceParameters } from './sequence-context.ts'
import { applyReshape, convertBatch } from './shape-conversion.ts'

/** One value of an ensemble tensor, held by one reference until nothing needs it any more. */
export interface HeldTensor {
  /** Null for an optional input that the request omits and an output that a step withholds. */
  readonly entry: TensorEntry | null
  /** True if the first dimension is the batch. */
  readonly isBatched: boolean
  /** The context that the step that made it gives on; absent for an ensemble input. */
  readonly context: RequestContext | undefined
  /** Consumers that have not ended, and the response that has not been emitted. */
  uses: number
}

/** The values that belong together: those of the request itself, or those that follow from one decoupled response. */
export interface Iteration {
  /** 0 for the request itself, else one more than the decoupled step whose response it follows from. */
  readonly label: number
  /** That of the decoupled step's execution; absent for the request itself. */
  readonly parent: Iteration | undefined
  /** By tensor; undefined until it is made. */
  readonly tensors: (HeldTensor | undefined)[]
  /** By step: how many of its tensors are not there yet, and of the steps that it depends on have not ended. */
  readonly pending: number[]
  /** Executions that have not ended, and the response that has not been emitted. */
  open: number
  /** Steps that have ended and that others depend on; kept where a decoupled step runs. */
  ended?: Set<number>
}

const NO_PARAMETERS: Parameters = new Map()
/** Of a response that belongs to no sequence, as nearly all do. */
const NO_SEQUENCE = sequenceParameters(EMPTY_CONTEXT, EMPTY_CONTEXT)

export function newIteration(graph: RunGraph, label: number, parent?: Iteration): Iteration {
  const open = graph.work[label] ?? 0
  return { label, parent, tensors: [], pending: graph.pending.slice(), open }
}

/** Takes one use away; the last one releases the tensor. */
export function useTensor(iteration: Iteration, tensor: number, actions: RunAction[]): void {
  const held = iteration.tensors[tensor]
  if (held === undefined) return
  held.uses -= 1
  if (held.uses > 0 || held.entry === null) return
  actions.push({ type: 'ReleaseTensor', ref: held.entry.ref })
}

/** Lets everything go that is still held. */
export function releaseTensors(iteration: Iteration, actions: RunAction[]): void {
  for (const held of iteration.tensors) {
    if (held === undefined || held.uses === 0 || held.entry === null) continue
    actions.push({ type: 'ReleaseTensor', ref: held.entry.ref })
  }
}

/**
 * Takes the requested outputs out of a complete iteration. Outputs that a step withheld are left out.
 *
 * @param o.iteration - undefined gives an empty response.
 * @param actions - gets a RetainTensor for each output that a step still reads.
 */
export function takeOutputs(
  o: {
    readonly request: RequestContext
    readonly outputs: readonly PlanEnsembleTensor[]
    readonly isBatched: boolean
    readonly iteration: Iteration | undefined
  },
  actions: RunAction[],
): { readonly outputs: TensorTable; readonly parameters: Parameters } {
  const { isBatched, iteration } = o
  const outputs = new Map<string, TensorEntry>()
  let made: RequestContext | undefined
  for (const { name, tensor, dims, reshape } of o.outputs) {
    const held = iteration?.tensors[tensor]
    if (held === undefined) continue
    held.uses -= 1
    const { entry } = held
    if (entry === null) continue
    if (held.uses > 0) actions.push({ type: 'RetainTensor', ref: entry.ref })
    let { shape } = entry
    if (held.isBatched !== isBatched)
      shape = convertBatch(shape, { dims: reshape ?? dims, isBatched })
    if (reshape !== undefined) shape = applyReshape(shape, isBatched, reshape, dims)
    outputs.set(name, shape === entry.shape ? entry : { ...entry, shape })
    // Triton puts no parameters on account of an output without bytes.
    if (made === undefined && elementCount(shape) > 0) made = held.context
  }
  return { outputs, parameters: responseParameters(o.request, made) }
}

/** @see triton-semantics 1.7 and 9.5 */
function responseParameters(request: RequestContext, made: RequestContext | undefined): Parameters {
  if (made === undefined) return NO_PARAMETERS
  const isPlain = made.correlationId === 0n && !made.sequenceStart && !made.sequenceEnd
  if (isPlain && typeof request.correlationId === 'bigint') return NO_SEQUENCE
  return sequenceParameters(request, made)
}

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
