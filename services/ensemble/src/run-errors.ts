import { ServeError } from '@tutti/errors'
import { requestPrefix } from '@tutti/tensor'
import type { EnsemblePlan } from './ensemble-plan.ts'
import type { TensorTable } from './ensemble-run.ts'
import type { StepExecution } from './step-execution.ts'

/**
 * Says why a request does not have the inputs that the ensemble declares.
 *
 * @returns INVALID_REQUEST with Triton's text.
 * @see triton-semantics 1.4.3 and 4.6
 */
export function inputsError(plan: EnsemblePlan, requestId: string, got: TensorTable): ServeError {
  const prefix = requestPrefix(requestId)
  const unexpected = [...got.keys()].find((key) => !plan.inputs.some(({ name }) => name === key))
  if (unexpected !== undefined) {
    return new ServeError(
      'INVALID_REQUEST',
      `${prefix}unexpected input '${unexpected}' in request header that does not map to any ensemble inputs`,
    )
  }
  const required = plan.inputs.filter((input) => !input.optional).map((input) => input.name)
  const missing = required.filter((name) => !got.has(name))
  const all = plan.inputs.length
  const wanted =
    required.length === all
      ? `expected ${all} inputs`
      : `expected number of inputs between ${required.length} and ${all}`
  return new ServeError(
    'INVALID_REQUEST',
    `${prefix}${wanted} but got ${got.size} inputs for model '${plan.name}'. Got input(s) ${list([...got.keys()])}, but missing required input(s) ${list(missing)}. Please provide all required input(s).`,
  )
}

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

function list(names: readonly string[]): string {
  return `[${names.map((name) => `'${name}'`).join(',')}]`
}
