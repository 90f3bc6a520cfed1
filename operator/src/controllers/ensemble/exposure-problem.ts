import type { ChildProblem } from '../child-problem.ts'

/** A fault that keeps requests from outside away. */
export interface ExposureProblem extends ChildProblem {
  /** True if nothing is wrong, but another program has not done its part yet: `Ready` waits for it. */
  readonly isAwaited?: boolean
}
