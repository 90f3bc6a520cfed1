import { bug, ServeError } from '@tutti/errors'
import type { Parameters, RequestContext } from '@tutti/tensor'
import { constantRef } from '../plan/constants.ts'
import type { EnsemblePlan, PlanEnsembleTensor, PlanStep, RunGraph } from '../plan/ensemble-plan.ts'
import { selectOutputs } from '../plan/run-graph.ts'
import type { EnsembleRun, RunAction, RunEvent, TensorEntry, TensorTable } from './ensemble-run.ts'
import {
  absentInput,
  carriesOutputs,
  controlsOf,
  firstPresent,
  isExpected,
  newExecution,
  newIteration,
  release,
  skippedInputs,
  toResponse,
  useTensor,
} from './iteration.ts'
import { OpenIterations } from './open-iterations.ts'
import { absentOutput, endOf, releaseTensors, unexpectedResponse } from './run-errors.ts'
import type { HeldTensor, Iteration, StepExecution } from './run-state.ts'
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
  return new GraphRun(plan, names.length === 0 ? plan.whole : selectOutputs(plan, names), context)
}

/** One request on its way through the needed part of a plan. */
class GraphRun implements EnsembleRun {
  readonly #plan: EnsemblePlan
  readonly #graph: RunGraph
  readonly #context: RequestContext
  /** Only where a decoupled step runs; all other requests have one iteration. */
  readonly #stream: OpenIterations | undefined
  readonly #request: Iteration
  /** Executions that have not ended, by number. Numbers are never given twice, so that a late event finds nothing. */
  readonly #executions = new Map<number, StepExecution>()
  #invoked = 0
  /** Steps that have all they wait for, until `#fire`. */
  readonly #ready: number[] = []
  #actions: RunAction[] = []
  #emitted = 0
  #hasStarted = false
  #hasEnded = false
  /** Failure that ends a request that streams, after the responses before it. */
  #failure: ServeError | undefined
  /** Executions behind the failure have not ended. */
  #hasCut = false

  constructor(plan: EnsemblePlan, graph: RunGraph, context: RequestContext) {
    this.#plan = plan
    this.#graph = graph
    this.#context = context
    this.#stream = graph.outputLabel === 0 ? undefined : new OpenIterations(graph)
    this.#request = this.#stream?.open(0) ?? newIteration(graph)
  }

  start(inputs: TensorTable, skipped: readonly string[] = []): readonly RunAction[] {
    if (this.#hasStarted) throw bug('an ensemble run starts once')
    this.#hasStarted = true
    if (this.#hasEnded) this.#release(inputs)
    else this.#enter(inputs, skipped)
    return this.#take()
  }

  on(event: RunEvent): readonly RunAction[] {
    if (event.type === 'StepResponded') this.#responded(event)
    else if (event.type === 'StepSkipped') this.#stepSkipped(event.execution)
    else if (event.type === 'StepFailed') this.#stepFailed(event)
    else this.#fail(endOf(this.#plan, event.error))
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

  #enter(inputs: TensorTable, skipped: readonly string[]): void {
    const { inputs: declared, maxBatchSize } = this.#plan
    const isBatched = maxBatchSize > 0
    for (const input of declared) {
      const { name, tensors, dims, reshape } = input
      const [tensor = -1] = tensors
      let entry = inputs.get(name) ?? this.#default(input, inputs)
      if (entry !== null && reshape !== undefined) {
        entry = { ...entry, shape: applyReshape(entry.shape, isBatched, dims, reshape) }
      }
      const uses = this.#graph.uses[tensor] ?? 0
      const own = input.isBatched ?? isBatched
      const isSkipped = skipped.includes(name)
      const held = { entry, isSkipped, isBatched: own, context: undefined, uses }
      this.#put(this.#request, tensor, held)
    }
    this.#fire(this.#request)
    this.#answer()
  }

  /** Returns the default of an input that the request leaves out, repeated for each row of the request's batch; null if it has none. */
  #default({ default: index }: PlanEnsembleTensor, inputs: TensorTable): TensorEntry | null {
    const value = index === undefined ? undefined : this.#plan.constants[index]
    if (index === undefined || value === undefined) return null
    const { datatype, shape } = value
    const [given] = inputs.values()
    const rows = this.#plan.maxBatchSize > 0 ? [given?.shape[0] ?? 1] : []
    return { ref: constantRef(index), datatype, shape: [...rows, ...shape] }
  }

  #responded(event: Responded): void {
    const execution = this.#executions.get(event.execution)
    if (execution === undefined) return this.#release(event.outputs)
    if (event.final) this.#executions.delete(event.execution)
    const hasOutputs = carriesOutputs(execution, event)
    let { context } = execution
    try {
      if (!isExpected(execution, event)) throw unexpectedResponse(execution, event.index)
      if (event.parameters.size > 0) context = overrideSequence(context, event.parameters)
      if (hasOutputs && execution.step.decoupled) this.#stream?.checkLimit(execution.step.model)
    } catch (error) {
      this.#release(event.outputs)
      return this.#executionFailed(execution, ServeError.from(error))
    }
    execution.responses += 1
    if (hasOutputs) this.#store(execution, event, context)
    if (event.final) this.#finish(execution)
    this.#answer()
  }

  #store(
    execution: StepExecution,
    { outputs: tensors, withheld }: Pick<Responded, 'outputs' | 'withheld'>,
    context: RequestContext,
  ): void {
    const { step } = execution
    let { iteration } = execution
    if (step.decoupled) iteration = this.#stream?.open(step.index + 1, iteration) ?? iteration
    let stored = 0
    for (const { name, tensor, isBatched = step.isBatched } of step.outputs) {
      const entry = tensors.get(name) ?? null
      if (entry !== null) stored += 1
      const uses = this.#graph.uses[tensor] ?? 0
      const isSkipped = entry === null && isOfSkipped(step, name, withheld)
      this.#put(iteration, tensor, { entry, isSkipped, isBatched, context, uses })
    }
    if (stored < tensors.size) this.#release(tensors, step.outputNames)
    this.#fire(iteration)
  }

  /** Puts a value in its place, or lets it go if no step and no response needs it. */
  #put(iteration: Iteration, tensor: number, held: HeldTensor): void {
    if (held.uses === 0) return release(held, this.#actions)
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
    // A step that is skipped fires those that it makes ready.
    const ready = this.#ready.splice(0)
    if (ready.length > 1) ready.sort((a, b) => a - b)
    for (const step of ready) {
      const planned = this.#plan.steps[step]
      if (planned === undefined) throw bug(`the plan has no step ${step}`)
      const absent = absentInput(planned, iteration)
      if (absent === undefined) this.#invoke(planned, iteration)
      else this.#pass(planned, iteration, absent)
    }
  }

  #invoke(step: PlanStep, iteration: Iteration): void {
    const { constants } = this.#plan
    const begun = newExecution(step, iteration, { request: this.#context, constants })
    const execution = ++this.#invoked
    this.#executions.set(execution, begun)
    const { index, parameters } = step
    const { context, inputs } = begun
    this.#actions.push({
      type: 'InvokeStep',
      step: index,
      execution,
      context: parameters === undefined ? context : withParameters(context, parameters),
      inputs,
      requestedOutputs: this.#requestedOf(step),
      controls: controlsOf(step, iteration),
      ...(step.part && { skipped: skippedInputs(step, iteration) }),
    })
  }

  /** The outputs of a part that nobody needs are not asked for: they may need steps that nothing else needs. */
  #requestedOf({ part, outputs, outputNames }: PlanStep): readonly string[] {
    if (part === undefined) return outputNames
    const needed = outputs.filter(({ tensor }) => (this.#graph.uses[tensor] ?? 0) > 0)
    return needed.map(({ name }) => name)
  }

  #pass(step: PlanStep, iteration: Iteration, absent: string): void {
    this.#actions.push({ type: 'SkipStep', step: step.index, absentInput: absent })
    this.#skip(step, iteration)
  }

  #stepSkipped(number: number): void {
    const execution = this.#executions.get(number)
    if (execution === undefined) return
    this.#executions.delete(number)
    this.#skip(execution.step, execution.iteration)
    this.#answer()
  }

  /** Ends a step that does not run. A decoupled one has no responses; the outputs of another one are absent. */
  #skip(step: PlanStep, iteration: Iteration): void {
    if (!step.decoupled) {
      const absent = { entry: null, isSkipped: true, isBatched: step.isBatched, context: undefined }
      for (const { tensor } of step.outputs) {
        this.#put(iteration, tensor, { ...absent, uses: this.#graph.uses[tensor] ?? 0 })
      }
      this.#fire(iteration)
    }
    this.#finish({ step, iteration })
  }

  /** Ends an execution; steps that waited for its end begin. */
  #finish({ step, iteration }: Pick<StepExecution, 'step' | 'iteration'>): void {
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
    const failure = this.#failure
    for (const [i, iteration] of complete.entries()) {
      if (this.#hasEnded) return
      this.#emit(iteration, isFinished && failure === undefined && i === complete.length - 1)
      this.#stream.end(iteration)
    }
    if (!isFinished || this.#hasEnded) return
    if (failure !== undefined) this.#fail(failure)
    else if (complete.length === 0) this.#emit(undefined, true)
  }

  /** @param iteration - absent for a response that only says that the stream has ended. */
  #emit(iteration: Iteration | undefined, final: boolean): void {
    const isBatched = this.#plan.maxBatchSize > 0
    const { outputs, given } = this.#graph
    const absent = outputs.find(({ tensors, optional }) => {
      return !optional && iteration && firstPresent(iteration, tensors)?.isSkipped === true
    })
    if (absent !== undefined) return this.#fail(endOf(this.#plan, absentOutput(this.#plan, absent)))
    const response = toResponse({ request: this.#context, outputs, isBatched, iteration })
    this.#hasEnded = final
    this.#actions.push({ type: 'Emit', index: this.#emitted++, final, ...response })
    if (iteration === undefined) return
    for (const tensor of given) useTensor(iteration, tensor, this.#actions)
  }

  #stepFailed({ execution: number, error, isRunning = false }: Failed): void {
    const execution = this.#executions.get(number)
    if (execution === undefined) return
    if (!isRunning) this.#executions.delete(number)
    this.#executionFailed(execution, error)
  }

  /** Goes on with what makes the responses before the failure, which the last one of several failures cuts shortest. */
  #executionFailed(execution: StepExecution, error: ServeError): void {
    const failure = endOf(this.#plan, error, execution)
    const stream = this.#stream
    if (stream === undefined) return this.#fail(failure)
    this.#failure = failure
    stream.cutBehind(execution)
    for (const [number, { iteration }] of this.#executions) {
      if (stream.has(iteration)) continue
      this.#executions.delete(number)
      this.#hasCut = true
    }
    this.#answer()
  }

  /** Ends the run. Responses that arrive later find no execution and are released. */
  #fail(failure: ServeError): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#executions.size > 0 || this.#hasCut) this.#actions.push({ type: 'CancelSteps' })
    this.#executions.clear()
    for (const iteration of this.#stream?.close() ?? [this.#request]) {
      releaseTensors(iteration, this.#actions)
    }
    this.#actions.push({ type: 'Fail', error: failure })
  }

  /** @param kept - names that stay. */
  #release(tensors: TensorTable, kept?: readonly string[]): void {
    for (const [name, { ref }] of tensors) {
      if (kept?.includes(name) !== true) this.#actions.push({ type: 'ReleaseTensor', ref })
    }
  }
}

/** Tells whether an output that is absent is so because steps were skipped. */
function isOfSkipped(
  { optionalOutputs }: PlanStep,
  name: string,
  withheld: Responded['withheld'],
): boolean {
  return optionalOutputs.has(name) && withheld?.includes(name) !== true
}

function withParameters(context: RequestContext, parameters: Parameters): RequestContext {
  return { ...context, parameters: new Map([...context.parameters, ...parameters]) }
}
