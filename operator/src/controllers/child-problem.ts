import type { ChildOutcome, SyncResult } from '../runtime/apply.ts'
import { toDeletion } from '../runtime/deletion.ts'
import { isRefusal } from '../runtime/refusal.ts'

/** Why a child is not as it is wanted; one line. */
export interface ChildProblem {
  readonly reason: string
  readonly message: string
  /** True if it ends by itself. */
  readonly isPassing?: boolean
}

/** Words for conditions: another object has the name; the API server refuses the child. */
export interface ChildReasons {
  readonly conflict: string
  readonly refused: string
}

/** The first problem that only a person can set right, else the first that passes. Pure. @throws what is worth another try. */
export function findChildProblem(
  { outcomes }: SyncResult,
  reasons: ChildReasons,
): ChildProblem | undefined {
  const problems = outcomes.flatMap((outcome) => toProblem(outcome, reasons) ?? [])
  return problems.find(({ isPassing }) => isPassing !== true) ?? problems[0]
}

function toProblem(outcome: ChildOutcome, reasons: ChildReasons): ChildProblem | undefined {
  const { resource, key, result } = outcome
  if (result === 'nameConflict') return { reason: reasons.conflict, message: outcome.message }
  if (result === 'terminating') {
    const deletion = toDeletion(outcome)
    return deletion && { reason: 'Terminating', ...deletion }
  }
  if (result !== 'refused' && result !== 'failed') return undefined
  const { error } = outcome
  if (!isRefusal(error)) throw error
  return { reason: reasons.refused, message: `${resource.kind} "${key.name}": ${error.message}` }
}
