import { bug, ServeError } from '@tutti/errors'
import type { RequestContext } from '@tutti/tensor'
import type { EnsemblePlan, RunGraph } from './ensemble-plan.ts'
import type { EnsembleRun, RunAction, RunEvent, TensorTable } from './ensemble-run.ts'
import {
  carriesOutputs,
  checkResponse,
  type HeldTensor,
  type Iteration,
  newExecution,
  newIteration,
  releaseTensors,
  type StepExecution,
  takeOutputs,
  useTensor,
} from './iteration.ts'
import { OpenIterations } from './open-iterations.ts'
import { retryDelayMs } from './retry-policy.ts'
import { endOf } from './run-errors.ts'
import { selectOutputs } from './run-graph.ts'
import { overrideSequence } from './sequence-context.ts'
import { applyReshape } from './shape-conversion.ts'

type Responded = Extract<RunEvent, { type: 'StepResponded' }>
type Failed = Extract<RunEvent, { type: 'StepFailed' }>

/**
 * Makes the state machine of one ensemble request.
 *
 * @param o.requestedOutputs - empty means all.
 * @throws ServeError INVALID_REQUEST if a requested output is none of the ensemble's.
 */
export function createEnsembleRun(
  plan: EnsemblePlan,
  o: { readonly context: RequestContext; readonly requestedOutputs: readonly string[] },
): EnsembleRun {
  const { context, requestedOutputs: names } = o
  return new GraphRun(plan, names.length === 0 ? plan.graph : selectOutputs(plan, names), context)
}

/** One request on its way through the needed part of a plan. */
class GraphRun implements EnsembleRun {
  readonly #plan: EnsemblePlan
  readonly #graph: RunGraph
  readonly #context: RequestContext
  /** Only where a decoupled step runs; all other requests have one iteration. */
  readonly #stream: OpenIterations | undefined
  readonly #request: Iteration
  /** Executions that have not ended: by attempt in flight, or by minus the timer of the next attempt. */
  readonly #executions = new Map<number, StepExecution>()
  /** Attempts so far, by step. Numbers are never given twice, so that a late event finds nothing. */
  readonly #attempts: number[] = []
  /** Steps that have all they wait for, until `#fire`. */
  readonly #ready: number[] = []
  #actions: RunAction[] = []
  #timers = 0
  #emitted = 0
  #hasStarted = false
  #hasEnded = false

  constructor(plan: EnsemblePlan, graph: RunGraph, context: RequestContext) {
    this.#plan = plan
    this.#graph = graph
    this.#context = context
    this.#stream = graph.outputLabel === 0 ? undefined : new OpenIterations(graph)
    this.#request = this.#stream?.open(0) ?? newIteration(graph, 0)
  }

  start(inputs: TensorTable): readonly RunAction[] {
    if (this.#hasStarted) throw bug('an ensemble run starts once')
    this.#hasStarted = true
    if (this.#hasEnded) this.#release(inputs)
    else this.#enter(inputs)
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
        this.#timerFired(event.timer)
        break
      case 'Cancelled':
        this.#fail(event.error)
        break
    }
    return this.#take()
  }

  isAhead(step: number): boolean {
    return this.#stream?.isAhead(step) ?? false
  }

  #take(): readonly RunAction[] {
    const actions = this.#actions
    this.#actions = []
    return actions
  }

  #enter(inputs: TensorTable): void {
    const { inputs: declared, maxBatchSize } = this.#plan
    const isBatched = maxBatchSize > 0
    for (const { name, tensor, dims, reshape } of declared) {
      let entry = inputs.get(name) ?? null
      if (entry !== null && reshape !== undefined) {
        entry = { ...entry, shape: applyReshape(entry.shape, isBatched, dims, reshape) }
      }
      const uses = this.#graph.uses[tensor] ?? 0
      this.#put(this.#request, tensor, { entry, isBatched, context: undefined, uses })
    }
    this.#fire(this.#request)
    this.#answer()
  }

  #responded(event: Responded): void {
    const key = this.#key(event.step, event.attempt)
    const execution = this.#executions.get(key)
    if (execution === undefined) return this.#release(event.outputs)
    if (event.final) this.#executions.delete(key)
    const hasOutputs = carriesOutputs(execution, event)
    let { context } = execution
    try {
      checkResponse(execution, event)
      if (event.parameters.size > 0) context = overrideSequence(context, event.parameters)
      if (hasOutputs && execution.step.decoupled) this.#stream?.checkLimit(execution.step.model)
    } catch (error) {
      this.#release(event.outputs)
      return this.#fail(ServeError.from(error), execution)
    }
    execution.responses += 1
    if (hasOutputs) this.#store(execution, event.outputs, context)
    if (event.final) this.#finish(execution)
    this.#answer()
  }

  #store(execution: StepExecution, tensors: TensorTable, context: RequestContext): void {
    const { step } = execution
    let { iteration } = execution
    if (step.decoupled) iteration = this.#stream?.open(step.index + 1, iteration) ?? iteration
    let stored = 0
    for (const { name, tensor } of step.outputs) {
      const entry = tensors.get(name) ?? null
      if (entry !== null) stored += 1
      const uses = this.#graph.uses[tensor] ?? 0
      this.#put(iteration, tensor, { entry, isBatched: step.isBatched, context, uses })
    }
    if (stored < tensors.size) this.#release(tensors, step.outputNames)
    this.#fire(iteration)
  }

  /** Puts a value in its place, or lets it go if no step and no response needs it. */
  #put(iteration: Iteration, tensor: number, held: HeldTensor): void {
    if (held.uses === 0) {
      if (held.entry !== null) this.#actions.push({ type: 'ReleaseTensor', ref: held.entry.ref })
      return
    }
    iteration.tensors[tensor] = held
    for (const step of this.#graph.consumers[tensor] ?? []) this.#countDown(iteration, step)
  }

  #countDown(iteration: Iteration, step: number): void {
    const left = (iteration.pending[step] ?? 0) - 1
    iteration.pending[step] = left
    if (left === 0) this.#ready.push(step)
  }

  /** Invokes what has become ready, in step order. */
  #fire(iteration: Iteration): void {
    const ready = this.#ready
    if (ready.length > 1) ready.sort((a, b) => a - b)
    for (const index of ready) {
      const step = this.#plan.steps[index]
      if (step === undefined) throw bug(`the plan has no step ${index}`)
      this.#invoke(newExecution(step, iteration, this.#context))
    }
    ready.length = 0
  }

  /** Makes the next attempt at `execution`. */
  #invoke(execution: StepExecution): void {
    const { step, context, inputs } = execution
    const attempt = (this.#attempts[step.index] ?? 0) + 1
    this.#attempts[step.index] = attempt
    execution.attempt = attempt
    execution.tries += 1
    this.#executions.set(this.#key(step.index, attempt), execution)
    this.#actions.push({
      type: 'InvokeStep',
      step: step.index,
      attempt,
      context,
      inputs,
      requestedOutputs: step.outputNames,
    })
  }

  /** Ends an execution; steps that waited for its end begin. */
  #finish({ step, iteration }: StepExecution): void {
    const dependents = this.#graph.dependents[step.index]
    if (dependents !== undefined && dependents.length > 0) {
      const waiting = this.#stream?.waitingFor(iteration, step.index) ?? [iteration]
      for (const inner of waiting) {
        for (const other of dependents) {
          if (this.#plan.steps[other]?.label === inner.label) this.#countDown(inner, other)
        }
        this.#fire(inner)
      }
    }
    for (const tensor of step.reads) useTensor(iteration, tensor, this.#actions)
    this.#stream?.end(iteration)
  }

  /** Emits what is complete, in order. What a request for one response gets waits for the last step to end. */
  #answer(): void {
    const isFinished = this.#executions.size === 0
    if (this.#stream === undefined) {
      if (isFinished) this.#emit(this.#request, true)
      return
    }
    const complete = this.#stream.takeComplete()
    for (const [i, iteration] of complete.entries()) {
      this.#emit(iteration, isFinished && i === complete.length - 1)
      this.#stream.end(iteration)
    }
    if (isFinished && complete.length === 0) this.#emit(undefined, true)
  }

  /** @param iteration - absent for a response that only says that the stream has ended. */
  #emit(iteration: Iteration | undefined, final: boolean): void {
    const isBatched = this.#plan.maxBatchSize > 0
    const o = { request: this.#context, outputs: this.#graph.outputs, isBatched, iteration }
    const response = takeOutputs(o, this.#actions)
    this.#hasEnded = final
    this.#actions.push({ type: 'Emit', index: this.#emitted, final, ...response })
    this.#emitted += 1
  }

  #stepFailed(event: Failed): void {
    const key = this.#key(event.step, event.attempt)
    const execution = this.#executions.get(key)
    if (execution === undefined) return
    this.#executions.delete(key)
    const { responses, tries } = execution
    const delayMs = retryDelayMs({ ...event, hasResponded: responses > 0, tries })
    if (delayMs === undefined) return this.#fail(event.error, execution)
    if (delayMs === 0) return this.#invoke(execution)
    this.#timers += 1
    this.#executions.set(-this.#timers, execution)
    this.#actions.push({ type: 'SetTimer', timer: this.#timers, delayMs })
  }

  #timerFired(timer: number): void {
    const execution = this.#executions.get(-timer)
    if (execution === undefined) return
    this.#executions.delete(-timer)
    this.#invoke(execution)
  }

  /** Ends the run. Responses that arrive later find no execution and are released. */
  #fail(error: ServeError, execution?: StepExecution): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    for (const [key, { step, attempt }] of this.#executions) {
      if (key < 0) this.#actions.push({ type: 'ClearTimer', timer: -key })
      else this.#actions.push({ type: 'CancelStep', step: step.index, attempt })
    }
    this.#executions.clear()
    for (const iteration of this.#stream?.close() ?? [this.#request]) {
      releaseTensors(iteration, this.#actions)
    }
    this.#actions.push({ type: 'Fail', error: endOf(this.#plan.name, error, execution) })
  }

  /** @param kept - names that stay. */
  #release(tensors: TensorTable, kept?: readonly string[]): void {
    for (const [name, { ref }] of tensors) {
      if (kept?.includes(name) !== true) this.#actions.push({ type: 'ReleaseTensor', ref })
    }
  }

  #key(step: number, attempt: number): number {
    return attempt * this.#plan.steps.length + step
  }
}
