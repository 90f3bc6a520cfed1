import {
  type CallContext,
  type CallScope,
  type Clock,
  openCallScope,
  remainingMs,
} from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { EnsemblePlan } from '@tutti/graph'
import { endingSink, ReadyGate, type ResponseSink } from '@tutti/tensor'

/** Makes the error of a request beyond the ensemble's `maxInFlightRequests`. */
export function overloaded({ name, graph }: EnsemblePlan, count: number): ServeError {
  const { maxInFlightRequests: bound } = graph
  const text = `ensemble '${name}' is overloaded: ${count} requests are in flight, the bound is ${bound}`
  return new ServeError('OVERLOADED', text, { details: { ensemble: name } })
}

/** Opens the scope of the ensemble's own timeout; undefined if the caller's deadline comes first. */
export function openTimeout(
  timeoutMs: number,
  context: CallContext,
  clock: Clock,
): CallScope | undefined {
  const leftMs = remainingMs(context, clock)
  if (leftMs !== undefined && leftMs <= timeoutMs) return undefined
  const { signal: parent, trace } = context
  const limitName = "the ensemble's timeout"
  return openCallScope({ clock, parent, remainingMs: timeoutMs, limitName, trace })
}

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

const SLOTS = new WeakMap<EnsemblePlan, readonly StepSlots[]>()

/** Returns the slots of an ensemble's steps, which all its requests share. */
export function slotsOf(plan: EnsemblePlan): readonly StepSlots[] {
  const known = SLOTS.get(plan)
  if (known !== undefined) return known
  const slots = plan.steps.map(() => new StepSlots(plan.graph.maxInFlightPerStep))
  SLOTS.set(plan, slots)
  return slots
}

/** Where decoupled steps wait while the steps after them have many of their responses to finish with. */
export class StepGates {
  readonly #gates = new Map<number, ReadyGate>()

  wait(step: number): Promise<void> {
    const gate = this.#gates.get(step) ?? new ReadyGate()
    this.#gates.set(step, gate)
    return gate.wait()
  }

  /** Lets those go on that have to wait no more. */
  open(isAhead: (step: number) => boolean): void {
    for (const [step, gate] of this.#gates) {
      if (isAhead(step)) continue
      this.#gates.delete(step)
      gate.open()
    }
  }
}
