import {
  type CallContext,
  type CallScope,
  type Clock,
  openCallScope,
  remainingMs,
} from '@tutti/chassis'
import type { EnsemblePlan } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { ReadyGate } from '@tutti/tensor'

/** Why a request beyond the ensemble's `maxInFlightRequests` is refused. */
export function overloaded(
  { name, maxInFlightRequests: bound }: EnsemblePlan,
  count: number,
): ServeError {
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
   * Calls `onSlot` once a slot is taken, at once if one is free.
   * @returns stops waiting; undefined if a slot was free.
   */
  acquire(onSlot: () => void): (() => void) | undefined {
    if (this.#free > 0) {
      this.#free -= 1
      onSlot()
      return undefined
    }
    // A wrapper of its own, so that the same callback may wait twice.
    const waiter = (): void => onSlot()
    this.#waiting.add(waiter)
    return () => this.#waiting.delete(waiter)
  }

  /** Takes a slot even if none is free, for a request that must not wait for those that have one. */
  take(): void {
    this.#free -= 1
  }

  release(): void {
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

/** The slots of an ensemble's steps, shared by all its requests. */
export function slotsOf(plan: EnsemblePlan): readonly StepSlots[] {
  const known = SLOTS.get(plan)
  if (known !== undefined) return known
  const slots = plan.steps.map(() => new StepSlots(plan.stepSlots.maxInflightRequests))
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
