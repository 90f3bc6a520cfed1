import type { ChildOutcome, SyncResult } from '../runtime/apply.ts'
import { toDeletion } from '../runtime/deletion.ts'
import { isRefusal } from '../runtime/refusal.ts'

/** The reason and message, one line, for a child that is not in its desired state. */
export interface ChildProblem {
  readonly reason: string
  readonly message: string
  /** True if the problem ends without a person. */
  readonly isPassing?: boolean
}

/**
 * The reasons for conditions: `conflict` if another object has the child's name, `refused` if the API server refuses the child.
 */
export interface ChildReasons {
  readonly conflict: string
  readonly refused: string
}

/**
 * Finds the first problem that needs a person, else the first that passes by itself. Pure.
 *
 * @returns undefined if no child has a problem.
 * @throws the error of a child that may succeed at the next try.
 */
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
