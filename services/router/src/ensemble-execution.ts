import { type CallScope, type Clock, isTimeOver, openCallScope, remainingMs } from '@tutti/chassis'
import {
  createEnsembleRun,
  type EnsemblePlan,
  type EnsembleRun,
  type RunAction,
  type RunEvent,
  type TensorEntry,
} from '@tutti/ensemble'
import { assert, type CancelSignal, ServeError } from '@tutti/errors'
import {
  type Executed,
  type NamedTensor,
  ReadyGate,
  type RequestContext,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
  type TensorMemory,
} from '@tutti/tensor'
import { lookupVersion, type ResolvedEntry } from './catalog.ts'
import type { EnsembleAdmission } from './ensemble-admission.ts'
import type { RequestScope } from './request-scope.ts'
import type { StepSlots } from './step-slots.ts'

export interface ExecutionDependencies {
  readonly clock: Clock
  readonly memory: TensorMemory
  /** What bounds the requests of each ensemble. */
  readonly admission: EnsembleAdmission
  /** The slots of an ensemble's steps, shared by all its requests. */
  slots(plan: EnsemblePlan): readonly StepSlots[]
  /** Executes one step, be its model an ordinary one or an ensemble. Never throws. */
  invoke(invocation: StepInvocation, sink: ResponseSink): void
}

/** One attempt at one step. */
export interface StepInvocation {
  readonly target: ResolvedEntry
  readonly ensemble: string
  readonly step: string
  readonly attempt: number
  readonly context: RequestContext
  readonly requestedOutputs: readonly string[]
  /** Held until the step has ended. */
  readonly inputs: readonly NamedTensor[]
  readonly scope: RequestScope
  readonly signal: CancelSignal
}

/** Sums over the steps of one ensemble request, in nanoseconds (triton-semantics 1.10). */
export interface SummedTimes {
  queueNs: number
  computeInputNs: number
  computeInferNs: number
  computeOutputNs: number
}

type Invoke = Extract<RunAction, { type: 'InvokeStep' }>

interface OpenStep {
  readonly cancel: AbortController
  /** Leaves the line for a slot; set while it waits. */
  leave?: () => void
}

/** Carries out the actions of one ensemble run and tells it what happened. */
export class EnsembleExecution {
  readonly times: SummedTimes = {
    queueNs: 0,
    computeInputNs: 0,
    computeInferNs: 0,
    computeOutputNs: 0,
  }
  readonly #o: ExecutionDependencies
  readonly #plan: EnsemblePlan
  readonly #scope: RequestScope
  readonly #sink: ResponseSink
  readonly #run: EnsembleRun
  readonly #open = new Map<string, OpenStep>()
  readonly #timers = new Map<number, () => void>()
  readonly #events: RunEvent[] = []
  /** Where decoupled steps wait for the steps after them. */
  readonly #ahead = new Map<number, ReadyGate>()
  #isApplying = false
  #emitted = 0
  readonly #steps: readonly ResolvedEntry[]
  /** Set where the ensemble's own timeout ends the request before the caller's deadline does. */
  readonly #timeout: CallScope | undefined
  readonly #leave: () => void
  readonly #onAbort = (): void => this.cancel(ServeError.from(this.#scope.signal.reason))

  /**
   * Takes a place among the ensemble's requests; `start` is to follow.
   *
   * @throws ServeError, prefixed, if a step's model cannot be found under the request's catalog; OVERLOADED.
   */
  constructor(
    o: ExecutionDependencies,
    plan: EnsemblePlan,
    request: { readonly context: RequestContext; readonly requestedOutputs: readonly string[] },
    scope: RequestScope,
    sink: ResponseSink,
  ) {
    this.#o = o
    this.#plan = plan
    this.#sink = sink
    this.#steps = resolveSteps(plan, scope)
    this.#run = createEnsembleRun(plan, request)
    this.#leave = o.admission.enter(plan)
    this.#timeout = openTimeout(plan, scope, o.clock)
    this.#scope = this.#timeout === undefined ? scope : { ...scope, ...this.#timeout.context }
  }

  /** Begins; the sink hears of everything from here on, possibly before this returns. */
  start(tensors: readonly NamedTensor[]): void {
    if (this.#scope.signal.aborted) {
      this.#end()
      this.#sink.fail(ServeError.from(this.#scope.signal.reason), 'no')
      return
    }
    this.#scope.signal.addEventListener('abort', this.#onAbort, { once: true })
    const inputs = new Map<string, TensorEntry>()
    for (const { name, datatype, shape, data } of tensors) {
      inputs.set(name, { ref: this.#o.memory.hold(data).id, datatype, shape })
    }
    this.#isApplying = true
    this.#applyAll(this.#run.start(inputs))
    this.#isApplying = false
    this.#drainEvents()
  }

  cancel(error: ServeError): void {
    this.#dispatch({ type: 'Cancelled', error })
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
    if (this.#ahead.size > 0) this.#letOn()
  }

  #applyAll(actions: readonly RunAction[]): void {
    for (const action of actions) this.#apply(action)
  }

  #apply(action: RunAction): void {
    switch (action.type) {
      case 'InvokeStep':
        return this.#invoke(action)
      case 'CancelStep':
        return this.#cancelStep(stepKey(action.step, action.attempt))
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
        return this.#sink.fail(action.error, 'maybe', this.#summedTimes())
    }
  }

  #emit(action: Extract<RunAction, { type: 'Emit' }>): void {
    const outputs: NamedTensor[] = []
    for (const [name, { ref, datatype, shape }] of action.outputs) {
      outputs.push({ name, datatype, shape, data: this.#o.memory.get(ref).bytes })
      // The encoder views the bytes; the collector frees them once the response is written.
      this.#o.memory.release(ref)
    }
    const { parameters, final } = action
    const response = { index: this.#emitted++, final, outputs, parameters }
    if (final) this.#end()
    this.#sink.send(final ? { ...response, times: this.#summedTimes() } : response)
  }

  #invoke(action: Invoke): void {
    const slots = this.#o.slots(this.#plan)[action.step]
    assert(slots !== undefined, `ensemble ${this.#plan.name} has no step ${action.step}`)
    const open: OpenStep = { cancel: new AbortController() }
    const key = stepKey(action.step, action.attempt)
    this.#open.set(key, open)
    if (this.#scope.callers !== undefined) {
      // The model that called may have the slot that this would wait for.
      slots.take()
      this.#execute(action, open, slots)
      return
    }
    let taken = false
    open.leave = slots.acquire(() => {
      taken = true
      delete open.leave
      this.#execute(action, open, slots)
    })
    if (taken) delete open.leave
  }

  /** The run has ended and hears no more of the step: one that waits for a slot just leaves the line. */
  #cancelStep(key: string): void {
    const open = this.#open.get(key)
    if (open?.leave !== undefined) {
      open.leave()
      this.#open.delete(key)
      return
    }
    const { signal } = this.#scope
    const ended = new ServeError('CANCELLED', 'the ensemble request has ended')
    open?.cancel.abort(signal.aborted ? signal.reason : ended)
  }

  #execute(action: Invoke, open: OpenStep, slots: StepSlots): void {
    const target = this.#steps[action.step]
    assert(target !== undefined, `ensemble ${this.#plan.name} has no step ${action.step}`)
    const { step, attempt } = action
    const invocation = {
      target,
      ensemble: this.#plan.name,
      step: this.#plan.steps[step]?.name ?? '',
      attempt,
      context: action.context,
      requestedOutputs: action.requestedOutputs,
      inputs: action.inputs.map(({ name, datatype, shape, ref }) => {
        return { name, datatype, shape, data: this.#o.memory.get(ref).bytes }
      }),
      scope: this.#scope,
      signal: open.cancel.signal,
    }
    const ended = (): void => {
      this.#open.delete(stepKey(step, attempt))
      slots.release()
    }
    this.#o.invoke(invocation, {
      send: (response) => {
        this.#responded(action, response)
        if (response.final) ended()
      },
      ready: () => this.#stepReady(step),
      fail: (error, executed, times) => {
        this.#failed(action, error, executed, times)
        ended()
      },
    })
  }

  #isOverdue(): boolean {
    return this.#timeout !== undefined && isTimeOver(this.#timeout.context, this.#o.clock)
  }

  #failed(action: Invoke, error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#addTimes(times)
    // The step was a moment ahead of the ensemble's timer, which says whose time is over.
    if (error.reason === 'DEADLINE_EXCEEDED' && this.#isOverdue()) return
    const { step, attempt } = action
    this.#dispatch({ type: 'StepFailed', step, attempt, error, executed })
  }

  #responded(action: Invoke, response: StepResponse): void {
    this.#addTimes(response.times)
    const outputs = new Map<string, TensorEntry>()
    for (const { name, datatype, shape, data } of response.outputs) {
      outputs.set(name, { ref: this.#o.memory.hold(data).id, datatype, shape })
    }
    const { step, attempt } = action
    const { index, final, parameters } = response
    this.#dispatch({ type: 'StepResponded', step, attempt, index, final, outputs, parameters })
  }

  #stepReady(step: number): Promise<void> | undefined {
    if (!this.#run.isAhead(step)) return this.#sink.ready?.()
    let gate = this.#ahead.get(step)
    if (gate === undefined) {
      gate = new ReadyGate()
      this.#ahead.set(step, gate)
    }
    return gate.wait().then(() => this.#sink.ready?.())
  }

  #letOn(): void {
    for (const [step, gate] of this.#ahead) {
      if (this.#run.isAhead(step)) continue
      this.#ahead.delete(step)
      gate.open()
    }
  }

  #summedTimes(): StepTimes {
    return { ...this.times, transferNs: 0 }
  }

  #addTimes(times: SummedTimes | undefined): void {
    if (times === undefined) return
    this.times.queueNs += times.queueNs
    this.times.computeInputNs += times.computeInputNs
    this.times.computeInferNs += times.computeInferNs
    this.times.computeOutputNs += times.computeOutputNs
  }

  #setTimer(timer: number, delayMs: number): void {
    const cancel = this.#o.clock.setTimer(delayMs, () => {
      this.#timers.delete(timer)
      this.#dispatch({ type: 'TimerFired', timer })
    })
    this.#timers.set(timer, cancel)
  }

  #clearTimer(timer: number): void {
    this.#timers.get(timer)?.()
    this.#timers.delete(timer)
  }

  #end(): void {
    this.#scope.signal.removeEventListener('abort', this.#onAbort)
    for (const timer of this.#timers.keys()) this.#clearTimer(timer)
    this.#timeout?.close()
    this.#leave()
  }
}

function openTimeout(
  { timeoutMs }: EnsemblePlan,
  scope: RequestScope,
  clock: Clock,
): CallScope | undefined {
  if (timeoutMs === undefined) return undefined
  const leftMs = remainingMs(scope, clock)
  if (leftMs !== undefined && leftMs <= timeoutMs) return undefined
  const { signal: parent, trace } = scope
  return openCallScope({
    clock,
    parent,
    remainingMs: timeoutMs,
    limitName: "the ensemble's timeout",
    ...(trace !== undefined && { trace }),
  })
}

function stepKey(step: number, attempt: number): string {
  return `${step}.${attempt}`
}

/** Finds the version of every step at once, before anything runs (triton-semantics 1.4.2). */
function resolveSteps(plan: EnsemblePlan, scope: RequestScope): readonly ResolvedEntry[] {
  return plan.steps.map((step) => {
    try {
      const version = step.version === -1 ? undefined : step.version
      return lookupVersion(scope.catalog, step.model, version)
    } catch (error) {
      throw ServeError.from(error)
        .withPrefix(`in ensemble '${plan.name}', `)
        .withDetails({ ensemble: plan.name, step: step.name, model: step.model })
    }
  })
}
