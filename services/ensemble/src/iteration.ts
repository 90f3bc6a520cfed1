import type { RequestContext } from '@tutti/tensor'
import type { RunAction, TensorEntry } from './ensemble-run.ts'
import type { RunGraph } from './run-graph.ts'

/** One value of an ensemble tensor, held by one reference until nobody needs it any more. */
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
  /** By tensor; undefined until it is made. */
  readonly tensors: (HeldTensor | undefined)[]
  /** By step: how many of its tensors are not there yet. */
  readonly pending: number[]
  missingOutputs: number
  /** Executions that have not ended, and the response that has not been emitted. At 0 nothing more can come of it. */
  open: number
}

export function newIteration(graph: RunGraph, label: number): Iteration {
  const answers = label === graph.outputLabel
  return {
    label,
    tensors: graph.uses.map(() => undefined),
    pending: [...graph.pending],
    missingOutputs: answers ? graph.outputs.length : 0,
    open: answers ? 1 : 0,
  }
}

/** Puts a value in its place, or lets it go if nobody needs it. Adds the steps that have all they read to `ready`. */
export function putTensor(
  o: { readonly graph: RunGraph; readonly iteration: Iteration; readonly ready: number[] },
  tensor: number,
  value: Omit<HeldTensor, 'uses'>,
  actions: RunAction[],
): void {
  const { graph, iteration, ready } = o
  const uses = graph.uses[tensor] ?? 0
  if (uses === 0) {
    if (value.entry !== null) actions.push({ type: 'ReleaseTensor', ref: value.entry.ref })
    return
  }
  iteration.tensors[tensor] = { ...value, uses }
  if (graph.outputOf[tensor] !== -1) iteration.missingOutputs -= 1
  for (const step of graph.consumers[tensor] ?? []) {
    const left = (iteration.pending[step] ?? 0) - 1
    iteration.pending[step] = left
    if (left === 0) ready.push(step)
  }
}

/** Takes one use away; the last one releases the tensor. */
export function useTensor(iteration: Iteration, tensor: number, actions: RunAction[]): void {
  const held = iteration.tensors[tensor]
  if (held === undefined) return
  held.uses -= 1
  if (held.uses === 0 && held.entry !== null) {
    actions.push({ type: 'ReleaseTensor', ref: held.entry.ref })
  }
}

/** Lets everything go that is still held. */
export function releaseIteration(iteration: Iteration, actions: RunAction[]): void {
  for (const held of iteration.tensors) {
    if (held === undefined || held.uses === 0 || held.entry === null) continue
    actions.push({ type: 'ReleaseTensor', ref: held.entry.ref })
  }
}
