import { retryDelayMs } from '@tutti/ensemble'
import type { ResponseSink } from '@tutti/tensor'
import { executeWithRetries } from '@tutti/transport'
import { type CallDependencies, callModel, type ModelCall } from './model-call.ts'
import type { RequestScope } from './request-scope.ts'

/**
 * Calls an ordinary model, again where it cannot have run, by the rules that hold for the steps of an ensemble. `sink` gets the
 * responses, or the last failure. Never throws.
 */
export function callWithRetries(
  o: CallDependencies,
  call: ModelCall,
  scope: RequestScope,
  sink: ResponseSink,
): void {
  const { signal } = scope
  const attempt = (tries: number, inner: ResponseSink): void =>
    callModel(o, tries === 1 ? call : { ...call, attempt: tries }, { scope, signal }, inner)
  executeWithRetries({ attempt, delayMs: retryDelayMs, clock: o.clock, signal }, sink)
}
