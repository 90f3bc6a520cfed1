import type { ServeError } from '@tutti/errors'
import { type CallRules, retryDelayMs } from '@tutti/graph'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { type FailedAttempt, retryOrFail } from '@tutti/transport'
import { CallBudget } from './call-budget.ts'
import { attemptModel, type ModelCall } from './model-call.ts'
import { noteStep } from './note-step.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import type { StepCall } from './step-call.ts'

type RetryRules = Pick<CallRules, 'retry' | 'mayRunTwice'>

/**
 * Tries a call again after a failure, as its rules say: without any, what cannot have run. Waits between attempts. Retries by a rule
 * of the step are a share of its calls; beyond it a failure is final.
 */
export function withRetries(rules: RetryRules, next: StepCall): StepCall {
  const percent = rules.retry?.budgetPercent
  const budget =
    percent === undefined ? undefined : new CallBudget({ percent, reserve: 10, perSecond: 1 })
  return (o, call, sink) => {
    budget?.called()
    new RetriedCall({ rules, budget, next }, o, call, sink).begin(1)
  }
}

const callReplica = withRetries({}, attemptModel)

/**
 * Calls the least busy replica of the request's revision, or that of its sequence, and hands its responses to `sink`, the last of
 * them final, or one failure. Tries again what cannot have run, and waits while all replicas are suspect. Never throws.
 */
export function callModel(o: RequestDependencies, call: ModelCall, sink: ResponseSink): void {
  if (call.target.config.sequence_batching === undefined) return callReplica(o, call, sink)
  const { key, callers, pins, root } = call.owner
  o.sequences.begin(call, sink, {
    pinOf: () => pins.pinOf(call.target),
    choose: () => pins.choose(o, call.target, call.request),
    call: (routed, to) =>
      callReplica(o, { ...call, owner: { key, callers, root, pins: routed ?? pins } }, to),
  })
}

interface Retrying {
  readonly rules: RetryRules
  /** Absent for what is tried again without a rule of the step. */
  readonly budget: CallBudget | undefined
  readonly next: StepCall
}

class RetriedCall implements ResponseSink {
  readonly #retrying: Retrying
  readonly #dependencies: RequestDependencies
  readonly #call: ModelCall
  readonly #sink: ResponseSink
  #tries = 1
  #hasResponded = false

  constructor(retrying: Retrying, o: RequestDependencies, call: ModelCall, sink: ResponseSink) {
    this.#retrying = retrying
    this.#dependencies = o
    this.#call = call
    this.#sink = sink
  }

  begin(tries: number): void {
    this.#tries = tries
    const call = tries === 1 ? this.#call : { ...this.#call, tries }
    this.#retrying.next(this.#dependencies, call, this)
  }

  send(response: StepResponse): void {
    this.#hasResponded = true
    this.#sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    const tries = this.#tries
    const failed = { error, executed, times, hasResponded: this.#hasResponded, tries }
    const { clock } = this.#dependencies
    const { signal } = this.#call.context
    const again = (): void => {
      this.#call.addTimes?.(times)
      this.begin(tries + 1)
    }
    const delayMs = (one: FailedAttempt): number | undefined => this.#delayMs(one)
    retryOrFail(failed, { delayMs, again, clock, signal }, this.#sink)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  #delayMs(failed: FailedAttempt): number | undefined {
    const { rules, budget } = this.#retrying
    const { clock, random } = this.#dependencies
    const delayMs = retryDelayMs(failed, rules, random)
    // A caller that is gone gets no further attempt.
    if (delayMs === undefined || this.#call.context.signal.aborted) return delayMs
    const isAllowed = budget?.take(clock.now()) ?? true
    noteStep(this.#dependencies, this.#call, { what: isAllowed ? 'retried' : 'retryRefused' })
    return isAllowed ? delayMs : undefined
  }
}
