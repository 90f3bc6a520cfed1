import { ServeError } from '@tutti/errors'
import type { RunAction } from './ensemble-run.ts'
import type { Iteration, StepExecution } from './run-state.ts'

/**
 * The error that ends a run: a prefix once per level of nesting, and where it was; what the innermost level knows is kept.
 *
 * @param execution - the one that failed; absent if it was none.
 */
export function endOf(ensemble: string, error: ServeError, execution?: StepExecution): ServeError {
  const place = execution && {
    step: execution.step.name,
    model: execution.step.model,
    // The error of a later attempt says so itself.
    attempt: '1',
  }
  return error.withPrefix(`in ensemble '${ensemble}', `).withDetails({ ensemble, ...place })
}

/** Lets everything go that a run still holds when it ends so. */
export function releaseTensors(iteration: Iteration, actions: RunAction[]): void {
  for (const held of iteration.tensors) {
    if (held === undefined || held.uses === 0 || held.entry === null) continue
    actions.push({ type: 'ReleaseTensor', ref: held.entry.ref })
  }
}

/** Why a response was not expected: one before it was lost, or it came twice, or it is one too many. */
export function unexpectedResponse({ step, responses }: StepExecution, index: number): ServeError {
  const problem =
    index === responses
      ? 'got a second response, want one because the model is not decoupled'
      : `got response ${index}, want response ${responses}`
  return new ServeError('RESPONSE_INVALID', `model '${step.model}': ${problem}`)
}
