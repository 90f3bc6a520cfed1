import type { RunAction, RunEvent } from './ensemble-run.ts'
import { retryDelayMs } from './retry-policy.ts'
import { invocation, type StepExecution } from './step-execution.ts'

type Failed = Extract<RunEvent, { type: 'StepFailed' }>

interface AttemptKey {
  readonly step: number
  readonly attempt: number
}

/** The executions of one run that have not ended: in flight, or waiting for another attempt. */
export class OpenExecutions {
  /** Attempts so far, by step. Numbers are never given twice, so that a late event finds nothing. */
  readonly #attempts: number[]
  readonly #inFlight = new Map<number, StepExecution>()
  /** By timer. */
  readonly #waiting = new Map<number, StepExecution>()
  #timers = 0

  constructor(stepCount: number) {
    this.#attempts = Array.from({ length: stepCount }, () => 0)
  }

  get isEmpty(): boolean {
    return this.#inFlight.size === 0 && this.#waiting.size === 0
  }

  /** The execution whose attempt in flight this is; undefined for what comes too late. */
  find(key: AttemptKey): StepExecution | undefined {
    return this.#inFlight.get(this.#index(key))
  }

  end(key: AttemptKey): void {
    this.#inFlight.delete(this.#index(key))
  }

  /** Makes the next attempt at `execution`. */
  invoke(execution: StepExecution, actions: RunAction[]): void {
    const step = execution.step.plan.index
    const attempt = (this.#attempts[step] ?? 0) + 1
    this.#attempts[step] = attempt
    execution.attempt = attempt
    execution.tries += 1
    this.#inFlight.set(this.#index({ step, attempt }), execution)
    actions.push(invocation(execution))
  }

  /**
   * Ends the attempt that failed and makes or schedules another.
   *
   * @returns false if the failure is final.
   */
  retry(execution: StepExecution, event: Failed, actions: RunAction[]): boolean {
    this.end(event)
    const delayMs = retryDelayMs({
      error: event.error,
      executed: event.executed,
      hasResponded: execution.responses > 0,
      tries: execution.tries,
    })
    if (delayMs === undefined) return false
    if (delayMs === 0) {
      this.invoke(execution, actions)
      return true
    }
    this.#timers += 1
    this.#waiting.set(this.#timers, execution)
    actions.push({ type: 'SetTimer', timer: this.#timers, delayMs })
    return true
  }

  timerFired(timer: number, actions: RunAction[]): void {
    const execution = this.#waiting.get(timer)
    if (execution === undefined) return
    this.#waiting.delete(timer)
    this.invoke(execution, actions)
  }

  cancelAll(actions: RunAction[]): void {
    for (const { step, attempt } of this.#inFlight.values()) {
      actions.push({ type: 'CancelStep', step: step.plan.index, attempt })
    }
    for (const timer of this.#waiting.keys()) actions.push({ type: 'ClearTimer', timer })
    this.#inFlight.clear()
    this.#waiting.clear()
  }

  #index({ step, attempt }: AttemptKey): number {
    return attempt * this.#attempts.length + step
  }
}
