import { ServeError } from '@tutti/errors'
import { requestPrefix } from '@tutti/tensor'
import type { EnsemblePlan, PlanEnsembleTensor } from './ensemble-plan.ts'
import type { TensorEntry, TensorTable } from './ensemble-run.ts'
import { applyReshape } from './shape-conversion.ts'

/**
 * Checks that the request has the inputs that the ensemble declares. Datatypes and shapes are the front door's.
 *
 * @throws ServeError INVALID_REQUEST with Triton's text.
 * @see triton-semantics 1.4.3 and 4.6
 */
export function checkInputs(plan: EnsemblePlan, requestId: string, inputs: TensorTable): void {
  const prefix = requestPrefix(requestId)
  for (const name of inputs.keys()) {
    if (plan.inputs.some((input) => input.name === name)) continue
    throw new ServeError(
      'INVALID_REQUEST',
      `${prefix}unexpected input '${name}' in request header that does not map to any ensemble inputs`,
    )
  }
  const required = plan.inputs.filter((input) => !input.optional)
  const missing = required.filter((input) => !inputs.has(input.name)).map((input) => input.name)
  if (missing.length === 0) return
  const all = plan.inputs.length
  const wanted =
    required.length === all
      ? `expected ${all} inputs`
      : `expected number of inputs between ${required.length} and ${all}`
  throw new ServeError(
    'INVALID_REQUEST',
    `${prefix}${wanted} but got ${inputs.size} inputs for model '${plan.name}'. Got input(s) ${list(inputs.keys())}, but missing required input(s) ${list(missing)}. Please provide all required input(s).`,
  )
}

/** The input as the steps see it. */
export function innerInput(
  plan: EnsemblePlan,
  input: PlanEnsembleTensor,
  entry: TensorEntry,
): TensorEntry {
  if (input.reshape === undefined) return entry
  const shape = applyReshape(entry.shape, plan.maxBatchSize > 0, input.dims, input.reshape)
  return { ...entry, shape }
}

function list(names: Iterable<string>): string {
  return `[${[...names].map((name) => `'${name}'`).join(',')}]`
}
