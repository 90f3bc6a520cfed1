import {
  type CallContext,
  type CallScope,
  isTimeOver,
  openCallScope,
  remainingMs,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ObservedRequest } from '@tutti/telemetry'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'
import { noteStep } from './note-step.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import type { StepCall } from './step-call.ts'

/**
 * Bounds the time of a call until its last response, attempts and the wait for a slot included. A call whose time is over is cancelled,
 * and what it answers later is dropped. Where the deadline of the request comes first, that one ends it.
 *
 * @param whose - words before the name of the step in the error.
 */
export function withTimeout(timeoutMs: number | undefined, next: StepCall, whose = ''): StepCall {
  if (timeoutMs === undefined) return next
  return (o, call, sink) => {
    const leftMs = remainingMs(call.context, o.clock)
    if (leftMs !== undefined && leftMs <= timeoutMs) next(o, call, sink)
    else new TimedCall(o, `${whose}step '${call.step}'`, { timeoutMs, sink }).begin(call, next)
  }
}

class TimedCall implements ResponseSink {
  readonly #dependencies: RequestDependencies
  readonly #name: string
  readonly #timeoutMs: number
  readonly #sink: ResponseSink
  #call: ModelCall | undefined
  #observed: ObservedRequest | undefined
  #scope: CallScope | undefined
  #context: CallContext | undefined
  #stopTimer: (() => void) | undefined
  #hasResponded = false
  #hasEnded = false

  constructor(
    o: RequestDependencies,
    name: string,
    { timeoutMs, sink }: { readonly timeoutMs: number; readonly sink: ResponseSink },
  ) {
    this.#dependencies = o
    this.#name = name
    this.#timeoutMs = timeoutMs
    this.#sink = sink
  }

  begin(call: ModelCall, next: StepCall): void {
    this.#call = call
    const { clock } = this.#dependencies
    const scope = openCallScope({ clock, parent: call.context.signal })
    this.#scope = scope
    const { signal } = scope.context
    const context = { ...call.context, signal, deadlineAt: clock.now() + this.#timeoutMs }
    this.#context = context
    this.#stopTimer = clock.setTimer(this.#timeoutMs, () => this.#expire())
    const timed = { ...call, context }
    if (context.observer === undefined) next(this.#dependencies, timed, this)
    else {
      const onObserved = (observed: ObservedRequest): void => void (this.#observed = observed)
      next(this.#dependencies, { ...timed, onObserved }, this)
    }
  }

  send(response: StepResponse): void {
    if (this.#hasEnded) return
    // On a busy machine the timer may be later than the answer.
    const isLate = this.#context && remainingMs(this.#context, this.#dependencies.clock) === 0
    if (isLate === true) return this.#expire()
    this.#hasResponded = true
    if (response.final) this.#end()
    this.#sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#hasEnded) return
    this.#end()
    // Another process may be a moment ahead of the timer. Its error names a deadline.
    const isOverdue = this.#context && isTimeOver(this.#context, this.#dependencies.clock)
    const isOwn = isOverdue === true && error.reason === 'DEADLINE_EXCEEDED'
    this.#sink.fail(isOwn ? this.#timedOut() : error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#hasEnded ? undefined : this.#sink.ready?.()
  }

  #expire(): void {
    const error = this.#timedOut()
    this.#hasEnded = true
    // The callee retains the inputs that it still reads, before the sink's owner takes them back.
    this.#scope?.cancel(error)
    this.#end()
    // A callee may take long to stop.
    this.#observed?.left(error)
    this.#sink.fail(error, 'maybe')
  }

  #end(): void {
    this.#hasEnded = true
    this.#stopTimer?.()
    this.#scope?.close()
  }

  #timedOut(): ServeError {
    if (this.#call !== undefined) noteStep(this.#dependencies, this.#call, { what: 'timedOut' })
    const what = this.#hasResponded ? 'no last response' : 'no answer'
    const text = `${this.#name}: ${what} within its timeout of ${this.#timeoutMs} ms`
    return new ServeError('STEP_TIMEOUT', text)
  }
}
