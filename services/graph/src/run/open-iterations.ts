import { ServeError } from '@tutti/errors'
import type { RunGraph } from '../plan/ensemble-plan.ts'
import { newIteration } from './iteration.ts'
import type { Iteration, StepExecution } from './run-state.ts'

/**
 * Responses of one decoupled step that the steps after it may have to finish with before it is to wait. Counted for each step:
 * were they counted together, one step could wait for what only its own next response lets go on.
 */
const MAX_AHEAD = 64

/** Enough for a stream whose consumers keep up; memory of one request stays bounded where they do not. */
const MAX_OPEN_ITERATIONS = 1024

/** The iterations of one request that runs a decoupled step. */
export class OpenIterations {
  readonly #graph: RunGraph
  /** Iterations of which something may still come. */
  readonly #all = new Set<Iteration>()
  /** How many of them there are, by label. */
  readonly #counts: number[] = []
  /** Iterations that make a response, in the order in which the responses are emitted. */
  #answers: Iteration[] = []
  #opened = 0
  /** Iterations behind a failure. Steps may still read their tensors. */
  readonly #cut: Iteration[] = []

  constructor(graph: RunGraph) {
    this.#graph = graph
  }

  isAhead(step: number): boolean {
    return (this.#counts[step + 1] ?? 0) >= MAX_AHEAD
  }

  /**
   * Checks the number of open iterations.
   *
   * @throws ServeError OVERLOADED if a decoupled step is too far ahead of the steps after it.
   */
  checkLimit(model: string): void {
    if (this.#all.size < MAX_OPEN_ITERATIONS) return
    const text = `model '${model}' is ahead of the steps after it: got ${MAX_OPEN_ITERATIONS} open iterations, want fewer`
    throw new ServeError('OVERLOADED', text)
  }

  /**
   * Opens an iteration.
   *
   * @param parent - iteration of the decoupled step's execution; absent for the request itself.
   */
  open(label: number, parent?: Iteration): Iteration {
    const iteration = newIteration(this.#graph, { label, number: this.#opened++, parent })
    this.#all.add(iteration)
    this.#counts[label] = (this.#counts[label] ?? 0) + 1
    if (label === this.#graph.outputLabel) this.#answers.push(iteration)
    // A step may wait for one of an iteration around this one that has ended already.
    for (const [step, dependents] of this.#graph.dependents.entries()) {
      if (dependents.length === 0) continue
      if (!wayUp(parent).some(({ ended }) => ended?.has(step))) continue
      for (const dependent of dependents) {
        iteration.pending[dependent] = (iteration.pending[dependent] ?? 0) - 1
      }
    }
    return iteration
  }

  /** Ends one execution of an iteration, or its response. After the last one the iteration is forgotten. */
  end(iteration: Iteration): void {
    iteration.open -= 1
    if (iteration.open === 0) this.#forget(iteration)
  }

  #forget(iteration: Iteration): void {
    this.#all.delete(iteration)
    this.#counts[iteration.label] = (this.#counts[iteration.label] ?? 1) - 1
  }

  /**
   * Notes that a step has ended in an iteration.
   *
   * @returns the iterations in which steps may have waited for that.
   */
  waitingFor(iteration: Iteration, step: number): readonly Iteration[] {
    if ((this.#graph.dependents[step] ?? []).length === 0) return []
    iteration.ended ??= new Set()
    iteration.ended.add(step)
    return [...this.#all].filter((inner) => wayUp(inner).includes(iteration))
  }

  /** Removes and returns the iterations that have all requested outputs, in order, up to the first that lacks one. */
  takeComplete(): readonly Iteration[] {
    const { outputs } = this.#graph
    const next = this.#answers.findIndex(({ tensors }) =>
      outputs.some((output) => output.tensors.some((tensor) => tensors[tensor] === undefined)),
    )
    return this.#answers.splice(0, next === -1 ? this.#answers.length : next)
  }

  has(iteration: Iteration): boolean {
    return this.#all.has(iteration)
  }

  /**
   * Removes all iterations after a failure. If a decoupled step failed, the iterations of the responses that it had sent stay.
   * If another step failed, the iterations before its own stay. Iterations around the failed execution go too, because what
   * they still open would come after the failure.
   */
  cutBehind({ step, iteration: failed }: StepExecution): void {
    const label = step.decoupled ? step.index + 1 : failed.label
    const end = step.decoupled ? this.#opened : failed.number
    const isBefore = (iteration: Iteration): boolean =>
      wayUp(iteration).some((one) => one.label === label && one.number < end)
    for (const iteration of this.#all) {
      if (isBefore(iteration)) continue
      this.#forget(iteration)
      this.#cut.push(iteration)
    }
    this.#answers = this.#answers.filter(isBefore)
  }

  /**
   * Forgets all iterations.
   *
   * @returns the iterations that were open or cut, so that the caller can release their tensors.
   */
  close(): readonly Iteration[] {
    const open = [...this.#all, ...this.#cut.splice(0)]
    this.#all.clear()
    this.#counts.length = 0
    return open
  }
}

/** Lists an iteration and the iterations around it. */
function wayUp(iteration: Iteration | undefined): readonly Iteration[] {
  return iteration === undefined ? [] : [iteration, ...wayUp(iteration.parent)]
}
