import type { CancelSignal } from '@tutti/errors'
import { endingSink, type ResponseSink } from '@tutti/tensor'
import type { StepCall } from './step-call.ts'

/**
 * Bounds how many requests to one step of one ensemble are open at the same time (`max_inflight_requests`, triton-semantics
 * 1.10), over all requests of the ensemble. First come, first served.
 */
export class StepSlots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(limit: number) {
    this.#free = limit
  }

  /**
   * Begins with a sink that gives the slot back, as soon as there is a slot; never if the signal aborts before.
   *
   * @param o.mayWait - false for a request that must not wait for those that have a slot: it takes one too many.
   */
  execute(
    o: { readonly mayWait: boolean; readonly signal: CancelSignal },
    sink: ResponseSink,
    begin: (sink: ResponseSink) => void,
  ): void {
    const start = (): void => begin(endingSink(sink, () => this.#release()))
    if (this.#free > 0 || !o.mayWait) {
      this.#free -= 1
      start()
      return
    }
    const next = (): void => {
      o.signal.removeEventListener('abort', leave)
      start()
    }
    const leave = (): void => void this.#waiting.delete(next)
    this.#waiting.add(next)
    o.signal.addEventListener('abort', leave, { once: true })
  }

  #release(): void {
    const next = this.#waiting.values().next().value
    if (next === undefined || this.#free < 0) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

/** Bounds the calls of a step that are open at the same time. @param limit - 0 for no bound. */
export function withSlots(limit: number, next: StepCall): StepCall {
  if (limit === 0) return next
  const slots = new StepSlots(limit)
  return (o, call, sink) => {
    // The model that called may have the slot that this would wait for.
    const mayWait = call.owner.callers === undefined
    slots.execute({ mayWait, signal: call.context.signal }, sink, (to) => next(o, call, to))
  }
}
