import { bug } from '@tutti/errors'
import {
  EMPTY_CONTEXT,
  type Parameters,
  type RequestContext,
  type Shape,
  type TensorValue,
} from '@tutti/tensor'
import { constantOf, constantRef } from '../plan/constants.ts'
import type { PlanEnsembleTensor, PlanStep, RunGraph } from '../plan/ensemble-plan.ts'
import type { NamedEntry, RunAction, RunEvent } from './ensemble-run.ts'
import type { HeldTensor, Iteration, StepExecution } from './run-state.ts'
import { sequenceParameters } from './sequence-context.ts'
import { applyReshape, convertBatch } from './shape-conversion.ts'

/** The sequence parameters of a response that belongs to no sequence, as nearly all responses. */
const NO_SEQUENCE = sequenceParameters(EMPTY_CONTEXT, EMPTY_CONTEXT)

/**
 * Makes an iteration whose tensors are not there yet.
 *
 * @param o - its place in the request. Default: the only iteration of a request, with label and number 0.
 */
export function newIteration(
  graph: RunGraph,
  o: Pick<Iteration, 'label' | 'number' | 'parent'> = { label: 0, number: 0, parent: undefined },
): Iteration {
  const open = graph.work[o.label] ?? 0
  return { ...o, tensors: [], pending: graph.pending.slice(), open }
}

/** Takes one use of a tensor away. After the last use, adds a ReleaseTensor to `actions`. */
export function useTensor(iteration: Iteration, tensor: number, actions: RunAction[]): void {
  const held = iteration.tensors[tensor]
  if (held === undefined) return
  held.uses -= 1
  if (held.uses === 0) release(held, actions)
}

/** Gives a value back that nothing needs. */
export function release({ entry }: Pick<HeldTensor, 'entry'>, actions: RunAction[]): void {
  if (entry === null || constantOf(entry.ref) !== undefined) return
  actions.push({ type: 'ReleaseTensor', ref: entry.ref })
}

/** Finds the value among several tensors: the first that is there, else one that is absent. */
export function firstPresent(
  { tensors: values }: Iteration,
  tensors: readonly number[],
): HeldTensor | undefined {
  let absent: HeldTensor | undefined
  for (const tensor of tensors) {
    const held = values[tensor]
    if (held?.entry) return held
    if (absent?.isSkipped !== true) absent = held ?? absent
  }
  return absent
}

/** Finds the required input that a step which has all it waits for lacks, because other steps were skipped. */
export function absentInput({ inputs }: PlanStep, iteration: Iteration): string | undefined {
  return inputs.find(
    ({ tensors, optional }) => !optional && firstPresent(iteration, tensors)?.isSkipped === true,
  )?.name
}

const NOTHING: readonly string[] = []

/** Lists the inputs that are absent because steps were skipped. */
export function skippedInputs({ inputs }: PlanStep, iteration: Iteration): readonly string[] {
  const absent = inputs.filter(({ tensors }) => {
    const held = firstPresent(iteration, tensors)
    return held?.entry === null && held.isSkipped
  })
  return absent.map(({ name }) => name)
}

/** Makes the response of a complete iteration from the requested outputs. Outputs that a step withheld are left out. */
export function toResponse(o: {
  readonly request: RequestContext
  readonly outputs: readonly PlanEnsembleTensor[]
  readonly isBatched: boolean
  /** Iteration of the response; undefined gives an empty response. */
  readonly iteration: Iteration | undefined
}): Pick<Extract<RunAction, { type: 'Emit' }>, 'outputs' | 'parameters' | 'withheld'> {
  const { isBatched, iteration } = o
  const outputs: NamedEntry[] = []
  let withheld = NOTHING
  let made: RequestContext | undefined
  for (const output of o.outputs) {
    const { name, tensors } = output
    const held = iteration && firstPresent(iteration, tensors)
    const entry = held?.entry ?? null
    if (held === undefined || entry === null) {
      if (held?.isSkipped !== true) withheld = [...withheld, name]
      continue
    }
    const shape = shapeOfOutput(
      output,
      { shape: entry.shape, isBatched: held.isBatched },
      isBatched,
    )
    outputs.push({ ...entry, name, shape })
    // Triton puts no parameters on account of an output without bytes.
    if (made === undefined && !shape.includes(0)) made = held.context
  }
  return { outputs, parameters: responseParameters(o.request, made), withheld }
}

/** Converts the shape of a tensor to that of the output which it becomes. */
function shapeOfOutput(
  { dims, reshape, isBatched: ownBatch }: PlanEnsembleTensor,
  made: { readonly shape: Shape; readonly isBatched: boolean },
  isBatched: boolean,
): Shape {
  // The outputs of a part stay as they were made.
  const isAsMade = ownBatch !== undefined || made.isBatched === isBatched
  const shape = isAsMade
    ? made.shape
    : convertBatch(made.shape, { dims: reshape ?? dims, isBatched })
  return reshape === undefined ? shape : applyReshape(shape, isBatched, reshape, dims)
}

/** @see triton-semantics 1.7 and 9.5 */
function responseParameters(request: RequestContext, made: RequestContext | undefined): Parameters {
  if (made === undefined) return EMPTY_CONTEXT.parameters
  const isPlain = made.correlationId === 0n && !made.sequenceStart && !made.sequenceEnd
  if (isPlain && typeof request.correlationId === 'bigint') return NO_SEQUENCE
  return sequenceParameters(request, made)
}

type StepResponded = Extract<RunEvent, { type: 'StepResponded' }>

/**
 * Makes the execution of a step that is ready, with its inputs and its context. The iteration holds the tensors until the
 * execution ends.
 */
export function newExecution(
  step: PlanStep,
  iteration: Iteration,
  {
    request,
    constants,
  }: { readonly request: RequestContext; readonly constants: readonly TensorValue[] },
): StepExecution {
  const { isBatched } = step
  const inputs: NamedEntry[] = []
  let context: RequestContext | undefined
  for (const input of step.inputs) {
    const { name, dims, isAsMade = false } = input
    const held = firstPresent(iteration, input.tensors)
    // Where steps disagree about the sequence, the first input that a step made decides.
    context ??= held?.context
    const entry = held?.entry ?? null
    if (held === undefined || entry === null) continue
    const { ref, datatype } = entry
    let { shape } = entry
    if (!isAsMade && held.isBatched !== isBatched) shape = convertBatch(shape, { dims, isBatched })
    inputs.push({ name, ref, datatype, shape })
  }
  addConstants(inputs, step, constants)
  return { step, iteration, context: context ?? request, inputs, responses: 0 }
}

/** Adds the constants of a step behind its other inputs, the first of which tells the rows of the batch. */
function addConstants(
  inputs: NamedEntry[],
  step: PlanStep,
  constants: readonly TensorValue[],
): void {
  const rows = inputs[0]?.shape[0] ?? 1
  for (const { name, constant, isRow } of step.constants) {
    const value = constants[constant]
    if (value === undefined) throw bug(`the plan has no constant ${constant}`)
    const { datatype, shape } = value
    inputs.push({
      name,
      ref: constantRef(constant),
      datatype,
      shape: isRow ? [rows, ...shape] : shape,
    })
  }
}

const NO_CONTROLS: readonly NamedEntry[] = []

/** Lists the tensors that the condition of a step reads. */
export function controlsOf({ controls }: PlanStep, { tensors }: Iteration): readonly NamedEntry[] {
  if (controls.length === 0) return NO_CONTROLS
  return controls.flatMap(({ name, tensor }) => {
    const entry = tensors[tensor]?.entry
    return entry ? { ...entry, name } : []
  })
}

/** Tells whether a response carries outputs. If not, it only says that the execution has ended (triton-semantics 1.9). */
export function carriesOutputs(execution: StepExecution, response: StepResponded): boolean {
  if (!response.final || response.outputs.size > 0) return true
  return !execution.step.decoupled && execution.responses === 0
}

/**
 * Tells whether a response is the next one of an execution. It is not if the one before it was lost, if it came twice, or if a
 * model that is not decoupled responds again.
 */
export function isExpected(execution: StepExecution, response: StepResponded): boolean {
  const { step, responses } = execution
  if (response.index !== responses) return false
  return step.decoupled || responses === 0 || !carriesOutputs(execution, response)
}
