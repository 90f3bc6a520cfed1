import {
  type CallContext,
  type CallScope,
  type Clock,
  openCallScope,
  remainingMs,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { EnsemblePlan } from '@tutti/graph'
import { ReadyGate } from '@tutti/tensor'

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
