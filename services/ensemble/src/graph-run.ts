import { assert, type ErrorDetails, ServeError } from '@tutti/errors'
import type { RequestContext } from '@tutti/tensor'
import { checkInputs, innerInput } from './ensemble-inputs.ts'
import type { EnsemblePlan } from './ensemble-plan.ts'
import { type EnsembleResponse, ensembleResponse } from './ensemble-response.ts'
import type { EnsembleRun, RunAction, RunEvent, TensorTable } from './ensemble-run.ts'
import {
  endStep,
  type Iteration,
  newIteration,
  putTensor,
  releaseIteration,
  useTensor,
} from './iteration.ts'
import { OpenExecutions } from './open-executions.ts'
import type { RunGraph } from './run-graph.ts'
import { overrideSequence } from './sequence-context.ts'
import {
  carriesOutputs,
  checkResponse,
  newExecution,
  type StepExecution,
} from './step-execution.ts'

type Responded = Extract<RunEvent, { type: 'StepResponded' }>
type Failed = Extract<RunEvent, { type: 'StepFailed' }>

/**
 * Responses of one decoupled step that the steps after it may have to finish with before it is to wait. Counted for each step:
 * were they counted together, one step could wait for room that only its own next response makes.
 */
const MAX_AHEAD = 64

/** Enough for a stream whose consumers keep up; memory of one request stays bounded where they do not. */
const MAX_OPEN_ITERATIONS = 1024

/** One request on its way through the needed part of a plan. */
export class GraphRun implements EnsembleRun {
  readonly #plan: EnsemblePlan
  readonly #graph: RunGraph
  readonly #context: RequestContext
  readonly #executions: OpenExecutions
  /** Those of which something may still come. */
  readonly #iterations = new Set<Iteration>()
  /** How many of them there are, by label. */
  readonly #open: number[] = []
  /** Iterations that make a response, in the order in which the responses are emitted. */
  readonly #answers: Iteration[] = []
  #actions: RunAction[] = []
  #hasStarted = false
  #hasEnded = false
  #emitted = 0

  constructor(plan: EnsemblePlan, graph: RunGraph, context: RequestContext) {
    this.#plan = plan
    this.#graph = graph
    this.#context = context
    this.#executions = new OpenExecutions(plan.steps.length)
  }

  start(inputs: TensorTable): readonly RunAction[] {
    assert(!this.#hasStarted, 'an ensemble run starts once')
    this.#hasStarted = true
    if (this.#hasEnded) this.#release(inputs)
    else this.#begin(inputs)
    return this.#take()
  }

  on(event: RunEvent): readonly RunAction[] {
    switch (event.type) {
      case 'StepResponded':
        this.#responded(event)
        break
      case 'StepFailed':
        this.#stepFailed(event)
        break
      case 'TimerFired':
        this.#executions.timerFired(event.timer, this.#actions)
        break
      case 'Cancelled':
        this.#fail(event.error, {})
        break
    }
    return this.#take()
  }

  isAhead(step: number): boolean {
    return (this.#open[step + 1] ?? 0) >= MAX_AHEAD
  }

  #take(): readonly RunAction[] {
    const actions = this.#actions
    this.#actions = []
    return actions
  }

  #begin(inputs: TensorTable): void {
    try {
      checkInputs(this.#plan, this.#context.id, inputs)
    } catch (error) {
      this.#release(inputs)
      this.#fail(ServeError.from(error), {})
      return
    }
    const iteration = this.#openIteration(0, undefined)
    const ready: number[] = []
    const target = { graph: this.#graph, iteration, ready }
    const isBatched = this.#plan.maxBatchSize > 0
    for (const input of this.#plan.inputs) {
      const given = inputs.get(input.name)
      const entry = given === undefined ? null : innerInput(this.#plan, input, given)
      putTensor(target, input.tensor, { entry, isBatched, context: undefined }, this.#actions)
    }
    this.#fire(iteration, ready)
    this.#answer()
  }

  #responded(event: Responded): void {
    const execution = this.#executions.find(event)
    if (execution === undefined) return this.#release(event.outputs)
    if (event.final) this.#executions.end(event)
    const hasOutputs = carriesOutputs(execution, event)
    let context: RequestContext
    try {
      checkResponse(execution, event)
      context = overrideSequence(execution.context, event.parameters)
      if (hasOutputs) this.#checkRoom(execution)
    } catch (error) {
      this.#release(event.outputs)
      this.#fail(ServeError.from(error), whereabouts(execution))
      return
    }
    execution.responses += 1
    if (hasOutputs) this.#store(execution, event, context)
    if (event.final) this.#finish(execution)
    this.#answer()
  }

  #store(execution: StepExecution, event: Responded, context: RequestContext): void {
    const { plan, isBatched } = execution.step
    const iteration = plan.decoupled
      ? this.#openIteration(plan.index + 1, execution.iteration)
      : execution.iteration
    const ready: number[] = []
    const target = { graph: this.#graph, iteration, ready }
    for (const { name, tensor } of plan.outputs) {
      const entry = event.outputs.get(name) ?? null
      putTensor(target, tensor, { entry, isBatched, context }, this.#actions)
    }
    for (const [name, { ref }] of event.outputs) {
      if (plan.outputs.some((output) => output.name === name)) continue
      this.#actions.push({ type: 'ReleaseTensor', ref })
    }
    this.#fire(iteration, ready)
  }

  #stepFailed(event: Failed): void {
    const execution = this.#executions.find(event)
    if (execution === undefined) return
    if (this.#executions.retry(execution, event, this.#actions)) return
    this.#fail(event.error, whereabouts(execution))
  }

  #openIteration(label: number, parent: Iteration | undefined): Iteration {
    const iteration = newIteration(this.#graph, label, parent)
    this.#iterations.add(iteration)
    this.#open[label] = (this.#open[label] ?? 0) + 1
    if (label === this.#graph.outputLabel) this.#answers.push(iteration)
    return iteration
  }

  /** Issues what has become ready, in step order. */
  #fire(iteration: Iteration, ready: number[]): void {
    if (ready.length > 1) ready.sort((a, b) => a - b)
    for (const index of ready) {
      const step = this.#graph.steps[index]
      assert(step !== undefined, `step ${index} is not needed`)
      if (this.#graph.dependsOn[index]?.length === 0) iteration.open += 1
      this.#executions.invoke(newExecution(step, iteration, this.#context), this.#actions)
    }
    this.#settle(iteration)
  }

  #finish(execution: StepExecution): void {
    const { iteration, step } = execution
    if (this.#graph.hasDependencies) this.#endStep(iteration, step.plan.index)
    for (const tensor of step.reads) useTensor(iteration, tensor, this.#actions)
    iteration.open -= 1
    this.#settle(iteration)
  }

  /** Begins what waited for the step only. */
  #endStep(iteration: Iteration, step: number): void {
    iteration.ended.add(step)
    for (const inner of this.#iterations) {
      const ready = endStep(this.#graph, { iteration, inner, step })
      if (ready.length > 0) this.#fire(inner, ready)
    }
  }

  #settle(iteration: Iteration): void {
    if (iteration.open > 0 || !this.#iterations.delete(iteration)) return
    this.#open[iteration.label] = (this.#open[iteration.label] ?? 1) - 1
  }

  /** Emits what is complete, in order. What a request for one response gets waits for the last step to end. */
  #answer(): void {
    const isFinished = this.#executions.isEmpty
    if (this.#graph.outputLabel === 0 && !isFinished) return
    let complete = 0
    while (this.#answers[complete]?.missingOutputs === 0) complete += 1
    for (const [i, iteration] of this.#answers.splice(0, complete).entries()) {
      const o = { plan: this.#plan, graph: this.#graph, request: this.#context, iteration }
      this.#emit(ensembleResponse(o, this.#actions), isFinished && i === complete - 1)
      iteration.open -= 1
      this.#settle(iteration)
    }
    if (isFinished && complete === 0)
      this.#emit({ outputs: new Map(), parameters: new Map() }, true)
  }

  #emit(response: EnsembleResponse, final: boolean): void {
    this.#hasEnded = final
    this.#actions.push({ type: 'Emit', index: this.#emitted, final, ...response })
    this.#emitted += 1
  }

  /** Ends the run. Responses that arrive later find no execution and are released. */
  #fail(error: ServeError, details: ErrorDetails): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#executions.cancelAll(this.#actions)
    for (const iteration of this.#iterations) releaseIteration(iteration, this.#actions)
    this.#iterations.clear()
    this.#open.length = 0
    const prefixed = error
      .withPrefix(`in ensemble '${this.#plan.name}', `)
      .withDetails({ ensemble: this.#plan.name, ...details })
    this.#actions.push({ type: 'Fail', error: prefixed })
  }

  /** @throws ServeError OVERLOADED if a decoupled step is too far ahead of the steps after it. */
  #checkRoom(execution: StepExecution): void {
    const { decoupled, model } = execution.step.plan
    const bound = MAX_OPEN_ITERATIONS
    if (!decoupled || this.#iterations.size < bound) return
    throw new ServeError(
      'OVERLOADED',
      `model '${model}' is ahead of the steps after it: got ${bound} open iterations, want fewer`,
    )
  }

  #release(tensors: TensorTable): void {
    for (const { ref } of tensors.values()) this.#actions.push({ type: 'ReleaseTensor', ref })
  }
}

function whereabouts(execution: StepExecution): ErrorDetails {
  const { name, model } = execution.step.plan
  return { step: name, model, attempt: String(execution.tries) }
}
