import { type CallContext, type CallScope, isTimeOver, openCallScope } from '@tutti/chassis'
import {
  createEnsembleRun,
  type EnsemblePlan,
  type EnsembleRun,
  type RunAction,
  type RunEvent,
  type TensorEntry,
} from '@tutti/ensemble'
import { bug, ServeError } from '@tutti/errors'
import { checkInferRequest } from '@tutti/model-config'
import type {
  Executed,
  InferRequest,
  Lent,
  NamedTensor,
  ResponseSink,
  StepResponse,
  StepTimes,
  TensorMemory,
} from '@tutti/tensor'
import { type ResolvedEntry, resolveSteps } from './catalog.ts'
import { openTimeout, overloaded, StepGates, type StepSlots, slotsOf } from './ensemble-limits.ts'
import {
  type CallDependencies,
  callModel,
  type ModelCall,
  type RequestOwner,
} from './model-call.ts'

export interface EnsembleDependencies extends CallDependencies {
  readonly memory: TensorMemory
  /** Requests in flight to each ensemble, nested ones too. By name, so that the count goes on when the plan changes. */
  readonly inFlight: Map<string, number>
}

/** A request to an ensemble: a client's, or that of a step of another ensemble. */
export type EnsembleCall = Pick<ModelCall, 'target' | 'request' | 'owner' | 'context'>

const NOT_LENT: Lent = {}

type Invoke = Extract<RunAction, { type: 'InvokeStep' }>

/** Carries out the actions of one ensemble run and tells it what happened. */
export class EnsembleExecution {
  /** Sums over the steps, in nanoseconds (triton-semantics 1.10). */
  readonly #times = {
    queueNs: 0,
    computeInputNs: 0,
    computeInferNs: 0,
    computeOutputNs: 0,
    transferNs: 0,
  }
  readonly #o: EnsembleDependencies
  readonly #plan: EnsemblePlan
  readonly #owner: RequestOwner
  readonly #context: CallContext
  readonly #sink: ResponseSink
  readonly #steps: readonly ResolvedEntry[]
  readonly #run: EnsembleRun
  readonly #open = new Map<number, OpenStep>()
  readonly #events: RunEvent[] = []
  #isApplying = false
  #emitted = 0
  /** Set where the ensemble's own timeout ends the request before the caller's deadline does. */
  readonly #timeout: CallScope | undefined
  /** Undefined where `max_inflight_requests` bounds nothing. */
  readonly #slots: readonly StepSlots[] | undefined
  #timers: Map<number, () => void> | undefined
  #gates: StepGates | undefined
  /** Some of its tensors are lent to it. */
  #hasLent = false
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
    o: EnsembleDependencies,
    { target, request, owner, context }: EnsembleCall,
    sink: ResponseSink,
  ) {
    const { plan } = target
    if (plan === undefined) throw bug(`ensemble ${target.entry.name} is READY without a plan`)
    this.#o = o
    this.#plan = plan
    this.#owner = owner
    this.#sink = sink
    this.#steps = target.steps ?? resolveSteps(target, plan)
    this.#run = createEnsembleRun(plan, request)
    this.#slots = plan.stepSlots.maxInflightRequests === 0 ? undefined : slotsOf(plan)
    const { name, maxInFlightRequests, timeoutMs } = plan
    const count = o.inFlight.get(name) ?? 0
    if (maxInFlightRequests !== undefined && count >= maxInFlightRequests) {
      throw overloaded(plan, count)
    }
    o.inFlight.set(name, count + 1)
    this.#timeout = timeoutMs === undefined ? undefined : openTimeout(timeoutMs, context, o.clock)
    this.#context = this.#timeout?.context ?? context
  }

  /** Begins; everything from here on comes to the sink, possibly before this returns. */
  start(request: Pick<InferRequest, 'inputs' | 'retain'>): void {
    const { signal } = this.#context
    if (signal.aborted) {
      this.#end()
      this.#sink.fail(ServeError.from(signal.reason), 'no')
      return
    }
    signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#isApplying = true
    this.#applyAll(this.#run.start(this.#hold(request.inputs, request.retain?.())))
    this.#isApplying = false
    this.#drainEvents()
  }

  /** From an open step. */
  responded(open: OpenStep, response: StepResponse): void {
    this.#addTimes(response.times)
    const { number: step, attempt } = open
    const { index, final, parameters } = response
    const outputs = this.#hold(response.outputs, response.retain?.())
    this.#dispatch({ type: 'StepResponded', step, attempt, index, final, outputs, parameters })
    if (final) this.#closeStep(open)
  }

  /** From an open step. */
  failed(open: OpenStep, error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#addTimes(times)
    const { number: step, attempt } = open
    // A step may be a moment ahead of the ensemble's timer. Its error names the ensemble's timeout.
    const isOurs = error.reason === 'DEADLINE_EXCEEDED' && this.#isOverdue()
    if (!isOurs) this.#dispatch({ type: 'StepFailed', step, attempt, error, executed })
    this.#closeStep(open)
  }

  /** From an open step. */
  stepReady(step: number): Promise<void> | undefined {
    if (!this.#run.isAhead(step)) return this.#sink.ready?.()
    this.#gates ??= new StepGates()
    return this.#gates.wait(step).then(() => this.#sink.ready?.())
  }

  /** What happens while actions are carried out waits until they all are: the run expects its actions in order. */
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
    switch (action.type) {
      case 'InvokeStep':
        return this.#invoke(action)
      case 'CancelStep':
        return this.#cancelStep(this.#keyOf(action.step, action.attempt))
      case 'RetainTensor':
        return this.#o.memory.retain(action.ref)
      case 'ReleaseTensor':
        return this.#o.memory.release(action.ref)
      case 'SetTimer':
        return this.#setTimer(action.timer, action.delayMs)
      case 'ClearTimer':
        return this.#clearTimer(action.timer)
      case 'Emit':
        return this.#emit(action)
      case 'Fail':
        this.#end()
        return this.#sink.fail(action.error, 'maybe', this.#times)
    }
  }

  #invoke(action: Invoke): void {
    const { step, attempt } = action
    const target = this.#steps[step]
    if (target === undefined) throw bug(`ensemble ${this.#plan.name} has no step ${step}`)
    const { context, requestedOutputs } = action
    const inputs = action.inputs.map(({ name, datatype, shape, ref }) => {
      return { name, datatype, shape, data: this.#o.memory.get(ref).bytes }
    })
    const scope = openCallScope({ clock: this.#o.clock })
    const open: OpenStep = {
      number: step,
      attempt,
      target,
      request: { context, inputs, requestedOutputs, ...this.#lend(action.inputs) },
      ensemble: this.#plan.name,
      step: this.#plan.steps[step]?.name ?? '',
      owner: this.#owner,
      context: this.#context,
      signal: scope.context.signal,
      scope,
      leave: undefined,
    }
    this.#open.set(this.#keyOf(step, attempt), open)
    const slots = this.#slots?.[step]
    if (slots === undefined) this.#call(open)
    else this.#callInSlot(open, slots)
  }

  #callInSlot(open: OpenStep, slots: StepSlots): void {
    if (this.#owner.callers !== undefined) {
      // The model that called may have the slot that this would wait for.
      slots.take()
      this.#call(open)
      return
    }
    open.leave = slots.acquire(() => {
      open.leave = undefined
      this.#call(open)
    })
  }

  #call(open: OpenStep): void {
    const sink = new StepSink(this, open)
    if (open.target.plan === undefined) callModel(this.#o, open, sink)
    else executeNested(this.#o, open, sink)
  }

  #closeStep({ number: step, attempt }: OpenStep): void {
    this.#open.delete(this.#keyOf(step, attempt))
    this.#slots?.[step]?.release()
  }

  /** The run has ended and drops what comes from the step. One that waits for a slot waits no more. */
  #cancelStep(key: number): void {
    const open = this.#open.get(key)
    if (open?.leave !== undefined) {
      open.leave()
      this.#open.delete(key)
      return
    }
    const { signal } = this.#context
    const ended = new ServeError('CANCELLED', 'the ensemble request has ended')
    open?.scope.cancel(signal.aborted ? ServeError.from(signal.reason) : ended)
  }

  #emit(action: Extract<RunAction, { type: 'Emit' }>): void {
    const outputs: NamedTensor[] = []
    for (const [name, { ref, datatype, shape }] of action.outputs) {
      outputs.push({ name, datatype, shape, data: this.#o.memory.get(ref).bytes })
    }
    const { parameters, final } = action
    const response = { index: this.#emitted++, final, outputs, parameters }
    const lent = this.#lend(action.outputs.values())
    if (final) this.#end()
    this.#sink.send(final ? { ...response, times: this.#times, ...lent } : { ...response, ...lent })
    for (const { ref } of action.outputs.values()) this.#o.memory.release(ref)
  }

  /** @param giveBack - for tensors that are lent: called when the last of them is released. */
  #hold(tensors: readonly NamedTensor[], giveBack?: () => void): ReadonlyMap<string, TensorEntry> {
    const held = new Map<string, TensorEntry>()
    let open = tensors.length
    const released = giveBack && (() => --open === 0 && giveBack())
    if (giveBack !== undefined) this.#hasLent = true
    if (open === 0) giveBack?.()
    for (const { name, datatype, shape, data } of tensors) {
      held.set(name, { ref: this.#o.memory.hold(data, released).id, datatype, shape })
    }
    return held
  }

  /** How a reader of these tensors retains them. */
  #lend(entries: Iterable<{ readonly ref: number }>): Lent {
    if (!this.#hasLent) return NOT_LENT
    const { memory } = this.#o
    const refs = [...entries].map(({ ref }) => ref)
    const retain = (): (() => void) => {
      for (const ref of refs) memory.retain(ref)
      return () => {
        for (const ref of refs) memory.release(ref)
      }
    }
    return { retain }
  }

  #addTimes(times: StepTimes | undefined): void {
    if (times === undefined) return
    this.#times.queueNs += times.queueNs
    this.#times.computeInputNs += times.computeInputNs
    this.#times.computeInferNs += times.computeInferNs
    this.#times.computeOutputNs += times.computeOutputNs
  }

  #isOverdue(): boolean {
    return this.#timeout !== undefined && isTimeOver(this.#timeout.context, this.#o.clock)
  }

  #setTimer(timer: number, delayMs: number): void {
    const cancel = this.#o.clock.setTimer(delayMs, () => {
      this.#timers?.delete(timer)
      this.#dispatch({ type: 'TimerFired', timer })
    })
    this.#timers ??= new Map()
    this.#timers.set(timer, cancel)
  }

  #clearTimer(timer: number): void {
    this.#timers?.get(timer)?.()
    this.#timers?.delete(timer)
  }

  #end(): void {
    this.#context.signal.removeEventListener('abort', this.#onAbort)
    for (const timer of this.#timers?.keys() ?? []) this.#clearTimer(timer)
    this.#timeout?.close()
    const { inFlight } = this.#o
    const left = (inFlight.get(this.#plan.name) ?? 0) - 1
    if (left > 0) inFlight.set(this.#plan.name, left)
    else inFlight.delete(this.#plan.name)
  }

  /** As step and attempt name one invocation. */
  #keyOf(step: number, attempt: number): number {
    return attempt * this.#steps.length + step
  }
}

/** Runs a step whose model is an ensemble: a request of its own to the inner ensemble, under the same catalog. Never throws. */
function executeNested(o: EnsembleDependencies, call: ModelCall, sink: ResponseSink): void {
  try {
    checkInferRequest(call.target.config, call.request)
    const context = { ...call.context, signal: call.signal }
    new EnsembleExecution(o, { ...call, context }, sink).start(call.request)
  } catch (error) {
    sink.fail(ServeError.from(error), 'no')
  }
}

/** A step that was invoked and has not ended. */
interface OpenStep extends ModelCall {
  /** Of the step in the plan. */
  readonly number: number
  readonly scope: CallScope
  /** Stops waiting for a slot; undefined if it does not wait. */
  leave: (() => void) | undefined
}

/** Takes the responses of one step. */
class StepSink implements ResponseSink {
  readonly #execution: EnsembleExecution
  readonly #open: OpenStep

  constructor(execution: EnsembleExecution, open: OpenStep) {
    this.#execution = execution
    this.#open = open
  }

  send(response: StepResponse): void {
    this.#execution.responded(this.#open, response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#execution.failed(this.#open, error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#execution.stepReady(this.#open.number)
  }
}
