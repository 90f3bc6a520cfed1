import { type EnsembleStepSpec, toMilliseconds } from '@tutti/api'
import { type CallRules, type OnError, RETRY_DEFAULTS, type StepRetry } from '../call-rules.ts'
import { modelOfStep, toConstant } from './resolve-references.ts'

const HEDGED_PERCENT = 5

/** Reads the rules for the call of a step; undefined if it has none. */
export function readCall({
  timeout,
  retry,
  hedge,
  mayRunTwice,
  onError,
}: EnsembleStepSpec): CallRules | undefined {
  const rules: CallRules = {
    ...(timeout !== undefined && { timeoutMs: toMilliseconds(timeout) }),
    ...(retry !== undefined && { retry: readRetry(retry) }),
    ...(hedge !== undefined && {
      hedge: {
        afterMs: toMilliseconds(hedge.after),
        maxPercent: hedge.maxPercent ?? HEDGED_PERCENT,
      },
    }),
    ...(mayRunTwice !== undefined && { mayRunTwice }),
    ...(onError !== undefined && { onError: readOnError(onError) }),
  }
  return Object.keys(rules).length === 0 ? undefined : rules
}

function readRetry(written: NonNullable<EnsembleStepSpec['retry']>): StepRetry {
  const { retryOn, backoffMs, budgetPercent } = RETRY_DEFAULTS
  return {
    maxRetries: written.maxRetries,
    retryOn: written.retryOn ?? retryOn,
    backoffMs: written.backoff === undefined ? backoffMs : toMilliseconds(written.backoff),
    budgetPercent: written.budgetPercent ?? budgetPercent,
  }
}

function readOnError(written: NonNullable<EnsembleStepSpec['onError']>): OnError {
  const { fallback } = written
  if (fallback === undefined) {
    const values = Object.entries(written.default ?? {})
    return {
      kind: 'default',
      outputs: values.map(([name, value]) => ({ name, value: toConstant(value) })),
    }
  }
  const { modelRef, timeout } = fallback
  return {
    kind: 'fallback',
    model: modelOfStep(fallback),
    version: modelRef?.version ?? -1,
    ...(timeout !== undefined && { timeoutMs: toMilliseconds(timeout) }),
  }
}
