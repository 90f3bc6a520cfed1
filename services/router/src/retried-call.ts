import { sleep } from '@tutti/chassis'
import { retryDelayMs } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { StepSink } from './ensemble-execution.ts'
import { type CallDependencies, callModel, type ModelCall } from './model-call.ts'
import type { RequestScope } from './request-scope.ts'

/** As many as an ensemble makes at a step. */
const MAX_ATTEMPTS = 3

interface Failure {
  readonly error: ServeError
  readonly executed: 'no' | 'maybe'
  readonly times: Parameters<StepSink['failed']>[2]
}

/**
 * Calls an ordinary model, again where it cannot have run, by the rules that hold for the steps of an ensemble. `sink` hears of
 * responses, or of the last failure. Never throws.
 */
export async function callWithRetries(
  o: CallDependencies,
  call: Omit<ModelCall, 'attempt'>,
  scope: RequestScope,
  sink: StepSink,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    let hasResponded = false
    let failure: Failure | undefined
    await callModel(o, { ...call, attempt: tries }, scope, scope.signal, {
      responded: (response) => {
        hasResponded = true
        sink.responded(response)
      },
      failed: (error, executed, times) => {
        failure = { error, executed, times }
      },
    })
    const failed = asFailure(failure)
    if (failed === undefined) return
    const delayMs = retryDelayMs({ ...failed, hasResponded, tries, maxAttempts: MAX_ATTEMPTS })
    if (delayMs === undefined) return tell(sink, failed, tries)
    try {
      if (delayMs > 0) await sleep(delayMs, { clock: o.clock, signal: scope.signal })
    } catch (error) {
      return tell(sink, { ...failed, error: ServeError.from(error) }, tries)
    }
  }
}

/** The compiler does not see that the sink assigns it. */
function asFailure(failure: Failure | undefined): Failure | undefined {
  return failure
}

function tell(sink: StepSink, { error, executed, times }: Failure, tries: number): void {
  const located = tries === 1 ? error : error.withDetails({ attempt: String(tries) })
  sink.failed(located, executed, times)
}
