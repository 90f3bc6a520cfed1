import { assert, type ErrorDetails, ServeError } from '@tutti/errors'
import type { RequestContext } from '@tutti/tensor'
import { checkInputs, innerInput } from './ensemble-inputs.ts'
import type { EnsemblePlan } from './ensemble-plan.ts'
import { ensembleResponse } from './ensemble-response.ts'
import type { EnsembleRun, RunAction, RunEvent, TensorTable } from './ensemble-run.ts'
import {
  type Iteration,
  newIteration,
  putTensor,
  releaseIteration,
  useTensor,
} from './iteration.ts'
import { DEFAULT_MAX_ATTEMPTS, retryDelayMs } from './retry-policy.ts'
import { type RunGraph, runGraph } from './run-graph.ts'
import { overrideSequence } from './sequence-context.ts'
import {
  carriesOutputs,
  checkResponse,
  invocation,
  newExecution,
  type StepExecution,
} from './step-execution.ts'

/** Iterations of one request that are open at once. A producer of responses that is this far ahead is failed. */
const DEFAULT_MAX_OPEN_ITERATIONS = 1024

export interface EnsembleRunOptions {
  readonly context: RequestContext
  /** Empty means all. */
  readonly requestedOutputs: readonly string[]
  /** Attempts at one execution of a step, the first included. Default 3. */
  readonly maxAttempts?: number
  /** Bound of the responses of decoupled steps that the steps after them have not finished with. Default 1024. */
  readonly maxOpenIterations?: number
}

/**
 * Makes the state machine of one ensemble request.
 *
 * @throws ServeError INVALID_REQUEST if a requested output is none of the ensemble's.
 */
export function createEnsembleRun(plan: EnsemblePlan, o: EnsembleRunOptions): EnsembleRun {
  return new GraphRun(plan, runGraph(plan, o.requestedOutputs), o)
}

type Responded = Extract<RunEvent, { type: 'StepResponded' }>
type Failed = Extract<RunEvent, { type: 'StepFailed' }>

class GraphRun implements EnsembleRun {
  readonly #plan: EnsemblePlan
  readonly #graph: RunGraph
  readonly #o: EnsembleRunOptions
  #actions: RunAction[] = []
  #hasStarted = false
  #hasEnded = false
  #emitted = 0
  #timers = 0
  /** Attempts so far, by step. */
  readonly #attempts: number[]
  /** In flight, by step and attempt. */
  readonly #executions = new Map<number, StepExecution>()
  /** Waiting for another attempt, by timer. */
  readonly #waiting = new Map<number, StepExecution>()
  readonly #iterations = new Set<Iteration>()
  /** Iterations that make a response, in the order in which the responses are emitted. */
  readonly #answers: Iteration[] = []

  constructor(plan: EnsemblePlan, graph: RunGraph, o: EnsembleRunOptions) {
    this.#plan = plan
    this.#graph = graph
    this.#o = o
    this.#attempts = plan.steps.map(() => 0)
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
        this.#retry(event.timer)
        break
      case 'Cancelled':
        this.#fail(event.error, {})
        break
    }
    return this.#take()
  }

  #take(): readonly RunAction[] {
    const actions = this.#actions
    this.#actions = []
    return actions
  }

  #begin(inputs: TensorTable): void {
    try {
      checkInputs(this.#plan, this.#o.context.id, inputs)
    } catch (error) {
      this.#release(inputs)
      this.#fail(ServeError.from(error), {})
      return
    }
    const iteration = this.#open(0)
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
    const execution = this.#execution(event)
    if (execution === undefined) return this.#release(event.outputs)
    if (event.final) this.#executions.delete(this.#key(event))
    let context: RequestContext
    try {
      checkResponse(execution, event)
      context = overrideSequence(execution.context, event.parameters)
      this.#checkRoom(execution)
    } catch (error) {
      this.#release(event.outputs)
      this.#fail(ServeError.from(error), this.#details(execution))
      return
    }
    const hasOutputs = carriesOutputs(execution, event)
    execution.responses += 1
    if (hasOutputs) this.#store(execution, event, context)
    if (event.final) this.#finish(execution)
    this.#answer()
  }

  #store(execution: StepExecution, event: Responded, context: RequestContext): void {
    const { plan, isBatched } = execution.step
    const iteration = plan.decoupled ? this.#open(plan.index + 1) : execution.iteration
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
    const execution = this.#execution(event)
    if (execution === undefined) return
    this.#executions.delete(this.#key(event))
    const delayMs = retryDelayMs({
      error: event.error,
      executed: event.executed,
      hasResponded: execution.responses > 0,
      tries: execution.tries,
      maxAttempts: this.#o.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
    })
    if (delayMs === undefined) return this.#fail(event.error, this.#details(execution))
    if (delayMs === 0) return this.#invoke(execution)
    const timer = ++this.#timers
    this.#waiting.set(timer, execution)
    this.#actions.push({ type: 'SetTimer', timer, delayMs })
  }

  #retry(timer: number): void {
    const execution = this.#waiting.get(timer)
    if (execution === undefined) return
    this.#waiting.delete(timer)
    this.#invoke(execution)
  }

  #open(label: number): Iteration {
    const iteration = newIteration(this.#graph, label)
    this.#iterations.add(iteration)
    if (label === this.#graph.outputLabel) this.#answers.push(iteration)
    return iteration
  }

  /** Issues what has become ready, in step order. */
  #fire(iteration: Iteration, ready: number[]): void {
    if (ready.length > 1) ready.sort((a, b) => a - b)
    for (const index of ready) {
      const step = this.#graph.steps[index]
      assert(step !== undefined, `step ${index} is not needed`)
      iteration.open += 1
      this.#invoke(newExecution(step, iteration, this.#o.context))
    }
    this.#settle(iteration)
  }

  #invoke(execution: StepExecution): void {
    const step = execution.step.plan.index
    execution.attempt = (this.#attempts[step] ?? 0) + 1
    execution.tries += 1
    this.#attempts[step] = execution.attempt
    this.#executions.set(this.#key({ step, attempt: execution.attempt }), execution)
    this.#actions.push(invocation(execution))
  }

  #finish(execution: StepExecution): void {
    const { iteration, step } = execution
    for (const tensor of step.reads) useTensor(iteration, tensor, this.#actions)
    iteration.open -= 1
    this.#settle(iteration)
  }

  #settle(iteration: Iteration): void {
    if (iteration.open === 0) this.#iterations.delete(iteration)
  }

  /** Emits what is complete, in order. What a request for one response gets waits for the last step to end. */
  #answer(): void {
    const isFinished = this.#executions.size === 0 && this.#waiting.size === 0
    if (this.#graph.outputLabel === 0 && !isFinished) return
    let complete = 0
    while (this.#answers[complete]?.missingOutputs === 0) complete += 1
    const answers = this.#answers.splice(0, complete)
    for (const [i, iteration] of answers.entries()) {
      this.#emit(iteration, isFinished && i === complete - 1)
    }
    if (isFinished && complete === 0) {
      this.#push({ outputs: new Map(), parameters: new Map() }, true)
    }
  }

  #emit(iteration: Iteration, final: boolean): void {
    const { context: request } = this.#o
    const o = { plan: this.#plan, graph: this.#graph, request, iteration }
    const response = ensembleResponse(o, this.#actions)
    iteration.open -= 1
    this.#settle(iteration)
    this.#push(response, final)
  }

  #push(response: ReturnType<typeof ensembleResponse>, final: boolean): void {
    this.#hasEnded = final
    this.#actions.push({ type: 'Emit', index: this.#emitted++, final, ...response })
  }

  /** Ends the run. Responses that arrive later find no execution and are released. */
  #fail(error: ServeError, details: ErrorDetails): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    for (const { step, attempt } of this.#executions.values()) {
      this.#actions.push({ type: 'CancelStep', step: step.plan.index, attempt })
    }
    for (const timer of this.#waiting.keys()) this.#actions.push({ type: 'ClearTimer', timer })
    for (const iteration of this.#iterations) releaseIteration(iteration, this.#actions)
    this.#executions.clear()
    this.#waiting.clear()
    this.#iterations.clear()
    const where = { ensemble: this.#plan.name, ...details }
    const prefixed = error.withPrefix(`in ensemble '${this.#plan.name}', `).withDetails(where)
    this.#actions.push({ type: 'Fail', error: prefixed })
  }

  /** @throws ServeError OVERLOADED if a decoupled step is too far ahead of the steps after it. */
  #checkRoom(execution: StepExecution): void {
    const bound = this.#o.maxOpenIterations ?? DEFAULT_MAX_OPEN_ITERATIONS
    if (!execution.step.plan.decoupled || this.#iterations.size < bound) return
    const { model } = execution.step.plan
    throw new ServeError(
      'OVERLOADED',
      `model '${model}' is ahead of the steps after it: got ${bound} open iterations, want fewer`,
    )
  }

  #release(tensors: TensorTable): void {
    for (const { ref } of tensors.values()) this.#actions.push({ type: 'ReleaseTensor', ref })
  }

  #details(execution: StepExecution): ErrorDetails {
    const { name, model } = execution.step.plan
    return { step: name, model, attempt: String(execution.tries) }
  }

  #execution(event: Responded | Failed): StepExecution | undefined {
    return this.#executions.get(this.#key(event))
  }

  #key(o: { readonly step: number; readonly attempt: number }): number {
    return o.attempt * this.#plan.steps.length + o.step
  }
}
