import { type EnsembleStepSpec, toMilliseconds } from '@tutti/api'
import type { CallRules } from '../call-rules.ts'

const HEDGED_PERCENT = 5

/** Reads the rules for the call of a step; undefined if it has none. */
export function readCall({ timeout, hedge }: EnsembleStepSpec): CallRules | undefined {
  const rules: CallRules = {
    ...(timeout !== undefined && { timeoutMs: toMilliseconds(timeout) }),
    ...(hedge !== undefined && {
      hedge: {
        afterMs: toMilliseconds(hedge.after),
        maxPercent: hedge.maxPercent ?? HEDGED_PERCENT,
      },
    }),
  }
  return Object.keys(rules).length === 0 ? undefined : rules
}
