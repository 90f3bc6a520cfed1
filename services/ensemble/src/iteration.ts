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
  /** That of the decoupled step's execution; absent for the request itself. */
  readonly parent: Iteration | undefined
  /** Steps that have ended and that others depend on. */
  readonly ended: Set<number>
  /** By tensor; undefined until it is made. */
  readonly tensors: (HeldTensor | undefined)[]
  /** By step: how many of its tensors are not there yet, and of the steps that it depends on have not ended. */
  readonly pending: number[]
  missingOutputs: number
  /**
   * Executions that have not ended, those of steps that depend on others from the beginning, and the response that has not been
   * emitted. At 0 nothing more can come of it.
   */
  open: number
}

export function newIteration(
  graph: RunGraph,
  label: number,
  parent: Iteration | undefined,
): Iteration {
  const answers = label === graph.outputLabel
  const iteration = {
    label,
    parent,
    ended: new Set<number>(),
    tensors: graph.uses.map(() => undefined),
    pending: [...graph.pending],
    missingOutputs: answers ? graph.outputs.length : 0,
    open: answers ? 1 : 0,
  }
  if (graph.hasDependencies) countDependencies(graph, iteration)
  return iteration
}

/** Whoever depends on others may have to wait for a step of an iteration around this one: this one stays open for it. */
function countDependencies(graph: RunGraph, iteration: Iteration): void {
  for (const [index, list] of graph.dependsOn.entries()) {
    if (list.length === 0 || graph.steps[index]?.plan.label !== iteration.label) continue
    iteration.open += 1
    const ended = list.filter((step) => isEnded(iteration, step)).length
    iteration.pending[index] = (iteration.pending[index] ?? 0) - ended
  }
}

function isEnded(iteration: Iteration, step: number): boolean {
  for (let around: Iteration | undefined = iteration; around; around = around.parent) {
    if (around.ended.has(step)) return true
  }
  return false
}

/** A step has ended in `iteration`: @returns the steps of `inner` that now have all they wait for. */
export function endStep(
  graph: RunGraph,
  o: { readonly iteration: Iteration; readonly inner: Iteration; readonly step: number },
): number[] {
  const { iteration, inner, step } = o
  if (!isWithin(inner, iteration)) return []
  return (graph.dependents[step] ?? []).filter((dependent) => {
    if (graph.steps[dependent]?.plan.label !== inner.label) return false
    const left = (inner.pending[dependent] ?? 0) - 1
    inner.pending[dependent] = left
    return left === 0
  })
}

function isWithin(inner: Iteration, outer: Iteration): boolean {
  for (let around: Iteration | undefined = inner; around; around = around.parent) {
    if (around === outer) return true
  }
  return false
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
