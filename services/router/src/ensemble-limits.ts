import {
  type CallContext,
  type CallScope,
  type Clock,
  openCallScope,
  remainingMs,
} from '@tutti/chassis'
import type { EnsemblePlan } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'

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
