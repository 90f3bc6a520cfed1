import type { ServeError } from '@tutti/errors'
import type { StepExecution } from './iteration.ts'

/**
 * The error that ends a run: a prefix once per level of nesting, and where it was; what the innermost level knows is kept.
 *
 * @param execution - the one that failed; absent if it was none.
 */
export function endOf(ensemble: string, error: ServeError, execution?: StepExecution): ServeError {
  const place = execution && {
    step: execution.step.name,
    model: execution.step.model,
    attempt: String(execution.tries),
  }
  return error.withPrefix(`in ensemble '${ensemble}', `).withDetails({ ensemble, ...place })
}
