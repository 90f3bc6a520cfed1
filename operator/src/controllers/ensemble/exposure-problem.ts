import type { ChildProblem } from '../child-problem.ts'

/** A problem that keeps away requests from outside the cluster. */
export interface ExposureProblem extends ChildProblem {
  /** True if nothing is wrong, but another program has not done its part yet. `Ready` waits for this program. */
  readonly isAwaited?: boolean
}
