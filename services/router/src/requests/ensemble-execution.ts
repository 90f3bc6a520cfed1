import { type CallContext, type CallScope, isTimeOver, openCallScope } from '@tutti/chassis'
import { bug, ServeError } from '@tutti/errors'
import {
  createEnsembleRun,
  type EnsemblePlan,
  type EnsembleRun,
  holds,
  type RunAction,
  type RunEvent,
  type TensorEntry,
} from '@tutti/graph'
import { checkInferRequest } from '@tutti/model-config'
import {
  type NamedTensor,
  NO_TIMES,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import { repeats, stepCallsOf } from '../calls/compose-steps.ts'
import type { ModelCall } from '../calls/model-call.ts'
import { noteStep } from '../calls/note-step.ts'
import { observedStep } from '../calls/observe-step.ts'
import type { RequestDependencies } from '../calls/request-dependencies.ts'
import type { StepCall } from '../calls/step-call.ts'
import { type ResolvedEntry, resolveSteps } from '../catalog/catalog.ts'
import { withPart } from '../parts/part-call.ts'
import { placeParts } from '../parts/place-parts.ts'
import { openTimeout, overloaded, StepGates } from './ensemble-limits.ts'
import { RunTensors } from './run-tensors.ts'

/**
 * Executes a part of an ensemble's graph, step by step. Its inputs were checked with the request to the ensemble. Never throws.
 *
 * @param call.request - asks for outputs by name.
 */
export function executePart(o: RequestDependencies, call: EnsembleCall, sink: ResponseSink): void {
  try {
    new EnsembleExecution(o, call, call.request.requestedOutputs, sink).start()
  } catch (error) {
    sink.fail(ServeError.from(error), 'no')
  }
}

/** A request to an ensemble: a client's, or that of a step of another ensemble. */
export type EnsembleCall = Pick<ModelCall, 'target' | 'request' | 'owner' | 'context' | 'skipped'>

type Invoke = Extract<RunAction, { type: 'InvokeStep' }>
type Emit = Extract<RunAction, { type: 'Emit' }>

/**
 * Executes a request to an ensemble. Never throws: everything comes to the sink, possibly before this returns.
 *
 * @param admitted - called with the batch size unless the request is refused before anything runs, or a cache answers it.
 */
export function executeEnsemble(
  o: RequestDependencies,
  call: EnsembleCall,
  sink: ResponseSink,
  admitted?: (batchSize: number) => void,
): void {
  try {
    const { batchSize, requestedOutputs } = checkInferRequest(call.target.config, call.request)
    const begin = (to: ResponseSink): void => {
      const execution = new EnsembleExecution(o, call, requestedOutputs, to)
      admitted?.(batchSize)
      // The run itself knows the ensemble's `reshape`, so it gets the inputs as the client shaped them.
      execution.start()
    }
    if (o.cache === undefined) begin(sink)
    else o.cache({ ...call, requestedOutputs }, sink, begin)
  } catch (error) {
    sink.fail(ServeError.from(error), 'no')
  }
}

/** Finds what the steps of a request run, those of one replica together. */
function placeSteps(
  { directory }: Pick<RequestDependencies, 'directory'>,
  { target, context }: EnsembleCall,
  plan: EnsemblePlan,
): ReturnType<typeof placeParts> {
  const whole = { plan, steps: target.steps ?? resolveSteps(target, plan) }
  // Who observes each step sees it called by itself.
  const isWhole = target.part !== undefined || context.observer !== undefined
  return isWhole ? whole : placeParts(directory.places, target, whole)
}

/** Counts a request to an ensemble. @throws ServeError OVERLOADED */
function takePlace(inFlight: RequestDependencies['inFlight'], plan: EnsemblePlan): void {
  const { name, graph } = plan
  const count = inFlight.get(name) ?? 0
  const most = graph.maxInFlightRequests ?? Number.POSITIVE_INFINITY
  if (count >= most) throw overloaded(plan, count)
  inFlight.set(name, count + 1)
}

/** Calls a part of an ensemble. */
const callPart: StepCall = withPart(executePart)

/** Returns the text of a step's condition. */
function conditionOf({ graph }: EnsemblePlan, step: string): string {
  return graph.steps.find(({ name }) => name === step)?.when ?? ''
}

/** Executes a request to an ensemble that is a step of another one. */
const executeNested: StepCall = (o, call, sink) =>
  executeEnsemble(o, call, ...o.countNested(call, sink))

/** Carries out the actions of one ensemble run and tells it what happened. */
class EnsembleExecution {
  /** Sums over the steps, in nanoseconds (triton-semantics 1.10). */
  readonly #times = { ...NO_TIMES }
  readonly #dependencies: RequestDependencies
  readonly #plan: EnsemblePlan
  readonly #call: EnsembleCall
  readonly #sink: ResponseSink
  readonly #steps: readonly ResolvedEntry[]
  readonly #run: EnsembleRun
  readonly #events: RunEvent[] = []
  readonly #tensors: RunTensors
  /** Number of attempts, by the index of the step. */
  readonly #attempts: number[] = []
  #isApplying = false
  /** Set where the ensemble's own timeout ends the request before the caller's deadline does. */
  readonly #timeout: CallScope | undefined
  readonly #context: CallContext
  /** Scope of all steps: it is cancelled when the run ends before they do. */
  readonly #stepScope: CallScope
  readonly #stepContext: CallContext
  readonly #stepCalls: readonly StepCall[]
  #gates: StepGates | undefined
  readonly #onAbort = (): void => {
    const error = ServeError.from(this.#context.signal.reason)
    this.#dispatch({ type: 'Cancelled', error })
  }

  /**
   * Takes a place among the ensemble's requests; `start` is to follow.
   *
   * @throws ServeError, prefixed, if a step's model cannot be found under the request's catalog; OVERLOADED.
   */
  constructor(
    o: RequestDependencies,
    call: EnsembleCall,
    requestedOutputs: readonly string[],
    sink: ResponseSink,
  ) {
    const { target, request, context } = call
    const { plan } = target
    if (plan === undefined) throw bug(`ensemble ${target.entry.name} is READY without a plan`)
    this.#dependencies = o
    this.#call = call
    this.#sink = sink
    const placed = placeSteps(o, call, plan)
    this.#plan = placed.plan
    this.#steps = placed.steps
    this.#run = createEnsembleRun(placed.plan, { context: request.context, requestedOutputs })
    this.#stepCalls = stepCallsOf(placed.plan, { nested: executeNested, part: callPart })
    const { memory } = context
    this.#tensors = new RunTensors(placed.plan, o, memory)
    const { graph } = plan
    const { timeoutMs } = graph
    if (target.part === undefined) takePlace(o.inFlight, plan)
    this.#timeout = timeoutMs === undefined ? undefined : openTimeout(timeoutMs, context, o.clock)
    this.#context = this.#timeout?.context ?? context
    this.#stepScope = openCallScope({ clock: o.clock })
    const { signal } = this.#stepScope.context
    this.#stepContext = {
      ...context,
      ...this.#timeout?.context,
      ...(memory && { memory }),
      signal,
    }
  }

  start(): void {
    const { signal } = this.#context
    if (signal.aborted) {
      this.#end()
      return this.#sink.fail(ServeError.from(signal.reason), 'no')
    }
    signal.addEventListener('abort', this.#onAbort, { once: true })
    const { request, skipped } = this.#call
    const { inputs, retain } = request
    this.#isApplying = true
    this.#applyAll(this.#run.start(this.#tensors.hold(inputs, retain, true), skipped))
    this.#drainEvents()
  }

  /** Handles an event. One that happens while actions are carried out waits until they all are: the run expects them in order. */
  #dispatch(event: RunEvent): void {
    this.#events.push(event)
    if (!this.#isApplying) this.#drainEvents()
  }

  #drainEvents(): void {
    this.#isApplying = true
    for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
      this.#applyAll(this.#run.on(event))
    }
    this.#isApplying = false
    this.#gates?.open((step) => this.#run.isAhead(step))
  }

  #applyAll(actions: readonly RunAction[]): void {
    for (const action of actions) this.#apply(action)
  }

  #apply(action: RunAction): void {
    if (action.type === 'InvokeStep') this.#invoke(action)
    else if (action.type === 'ReleaseTensor') this.#tensors.release(action.ref)
    else if (action.type === 'Emit') this.#emit(action)
    else if (action.type === 'CancelSteps') this.#cancelSteps()
    else if (action.type === 'SkipStep')
      this.#skipped(action.step, `input '${action.absentInput}' is absent`)
    else {
      this.#end()
      this.#sink.fail(action.error, 'maybe', this.#times)
    }
  }

  #invoke(action: Invoke): void {
    const { step, execution, context, inputs, requestedOutputs, skipped } = action
    if (!this.#isWanted(action)) return
    const target = this.#steps[step]
    if (target === undefined) throw bug(`ensemble ${this.#plan.name} has no step ${step}`)
    const { owner } = this.#call
    const planned = this.#plan.steps[step]
    const isRepeated = planned !== undefined && repeats(planned)
    let tensors: readonly NamedTensor[]
    try {
      tensors = this.#tensors.read(inputs)
    } catch (error) {
      // A constant that is repeated for a batch may find no memory.
      return this.#dispatch({ type: 'StepFailed', execution, error: ServeError.from(error) })
    }
    const builtin = planned?.builtin
    const call: ModelCall = {
      target,
      request: {
        context,
        inputs: tensors,
        requestedOutputs,
        ...this.#tensors.lend(inputs),
        ...(builtin && { program: builtin.text }),
      },
      ensemble: this.#call.target.entry.name,
      step: planned?.name ?? '',
      ...(skipped && { skipped }),
      ...(isRepeated && { controls: this.#tensors.read(action.controls) }),
      owner,
      context: this.#stepContext,
      nextAttempt: () => this.#nextAttempt(step),
      addTimes: (times) => this.#addTimes(times),
    }
    const sink: ResponseSink = {
      send: (response) => this.#responded(execution, response),
      fail: (error, _executed, times) => this.#failed(execution, error, times),
      ready: () => this.#stepReady(step),
    }
    this.#stepCalls[step]?.(this.#dependencies, call, sink)
  }

  /** Evaluates the condition of a step that has one. */
  #isWanted({ step, execution, context, controls }: Invoke): boolean {
    const { when, name = '' } = this.#plan.steps[step] ?? {}
    if (when === undefined) return true
    try {
      const tensors = this.#tensors.read(controls)
      if (holds(when, { step: name, tensors, parameters: context.parameters })) return true
      this.#skipped(step, conditionOf(this.#plan, name))
      this.#dispatch({ type: 'StepSkipped', execution })
    } catch (error) {
      this.#dispatch({ type: 'StepFailed', execution, error: ServeError.from(error) })
    }
    return false
  }

  /** Tells of a step that does not run. */
  #skipped(index: number, why: string): void {
    const target = this.#steps[index]
    if (target === undefined) return
    const step = this.#plan.steps[index]?.name ?? ''
    const call = {
      target,
      ensemble: this.#call.target.entry.name,
      step,
      context: this.#call.context,
    }
    noteStep(this.#dependencies, call, { what: 'skipped' })
    const { observer, span } = this.#call.context
    observer?.passed?.(observedStep(this.#plan, call), 'skipped', why)
    const { ensemble } = call
    span?.addEvent('step skipped', {
      'tutti.ensemble': ensemble,
      'tutti.step': step,
      'tutti.why': why,
    })
  }

  #nextAttempt(step: number): number {
    const attempt = (this.#attempts[step] ?? 0) + 1
    this.#attempts[step] = attempt
    return attempt
  }

  #responded(execution: number, response: StepResponse): void {
    this.#addTimes(response.times)
    const { index, final, parameters } = response
    let outputs: Map<string, TensorEntry>
    try {
      outputs = this.#tensors.hold(response.outputs, response.retain)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      return this.#dispatch({ type: 'StepFailed', execution, error, isRunning: !final })
    }
    const withheld = response.times?.part?.withheld
    const event = { type: 'StepResponded', execution, index, final, outputs, parameters } as const
    this.#dispatch(withheld === undefined ? event : { ...event, withheld })
  }

  #failed(execution: number, error: ServeError, times: StepTimes | undefined): void {
    this.#addTimes(times)
    // A step may be a moment ahead of the ensemble's timer. Its error names the ensemble's timeout.
    const isOverdue = this.#timeout && isTimeOver(this.#timeout.context, this.#dependencies.clock)
    if (isOverdue === true && error.reason === 'DEADLINE_EXCEEDED') return
    this.#dispatch({ type: 'StepFailed', execution, error })
  }

  #stepReady(step: number): Promise<void> | undefined {
    if (!this.#run.isAhead(step)) return this.#sink.ready?.()
    this.#gates ??= new StepGates()
    return this.#gates.wait(step).then(() => this.#sink.ready?.())
  }

  /** Cancels the steps: the run has ended and drops what comes from them. */
  #cancelSteps(): void {
    const { signal } = this.#context
    const ended = new ServeError('CANCELLED', 'the ensemble request has ended')
    this.#stepScope.cancel(signal.aborted ? ServeError.from(signal.reason) : ended)
  }

  #emit({ index, final, outputs, parameters, withheld }: Emit): void {
    const response = { index, final, outputs: this.#tensors.give(outputs), parameters }
    const lent = this.#tensors.lend(outputs)
    if (final) this.#end()
    if (!final) return this.#sink.send({ ...response, ...lent })
    const isPart = this.#call.target.part !== undefined
    const times = isPart ? { ...this.#times, part: { withheld, steps: [] } } : this.#times
    this.#sink.send({ ...response, times, ...lent })
  }

  #addTimes(times: StepTimes | undefined): void {
    if (times === undefined) return
    this.#times.queueNs += times.queueNs
    this.#times.computeInputNs += times.computeInputNs
    this.#times.computeInferNs += times.computeInferNs
    this.#times.computeOutputNs += times.computeOutputNs
  }

  #end(): void {
    this.#context.signal.removeEventListener('abort', this.#onAbort)
    this.#timeout?.close()
    this.#tensors.endCount()
    if (this.#call.target.part !== undefined) return
    const { inFlight } = this.#dependencies
    const left = (inFlight.get(this.#plan.name) ?? 0) - 1
    if (left > 0) inFlight.set(this.#plan.name, left)
    else inFlight.delete(this.#plan.name)
  }
}
