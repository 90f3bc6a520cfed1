import type { ChildProblem } from '../child-problem.ts'

/** What keeps requests from outside away. */
export interface ExposureProblem extends ChildProblem {
  /** True if nothing is wrong, but somebody else has not done his part yet: `Ready` waits for it. */
  readonly isAwaited?: boolean
}
