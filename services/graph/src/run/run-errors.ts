import { ENGINES } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import type { EnsemblePlan, PlanEnsembleTensor, PlanPart, PlanStep } from '../plan/ensemble-plan.ts'
import type { RunAction } from './ensemble-run.ts'
import { release } from './iteration.ts'
import type { Iteration, StepExecution } from './run-state.ts'

/** How texts of engines begin that say nothing of the model. Those of Python models name it, or are their author's own. */
const ENGINE_TEXTS = ENGINES.flatMap(({ errorPrefix }) => errorPrefix ?? [])

/**
 * Makes the error that ends a run. The text begins with the ensemble's name, once per level of nesting, and the details say
 * where the error was. Details of an inner level are kept.
 *
 * @param execution - the execution that failed; absent if none did.
 */
export function endOf(
  { name: ensemble, tensors, steps }: EnsemblePlan,
  error: ServeError,
  execution?: StepExecution,
): ServeError {
  // An error from within has its place already; the transport knows of no ensemble.
  if (execution?.step.part !== undefined && error.details.ensemble !== undefined) {
    return nameMakerOutside(execution.step.part, error)
  }
  const place = execution && {
    step: execution.step.name,
    model: nameOf(execution.step),
    // The error of a later attempt says so itself.
    attempt: '1',
  }
  const named = execution === undefined ? error : nameStep({ tensors, steps }, error, execution)
  return named.withPrefix(`in ensemble '${ensemble}', `).withDetails({ ensemble, ...place })
}

/** Says in the text what clients, which do not show details, could not tell: which step failed, and which one made what a step refuses. */
function nameStep(
  { tensors, steps }: Pick<EnsemblePlan, 'tensors' | 'steps'>,
  error: ServeError,
  { step }: StepExecution,
): ServeError {
  // An ensemble within has said it; the transport says it in details alone.
  if (error.details.ensemble !== undefined) return error
  // Models say what those of Triton say. The text of a replica that was lost does not say what it ran.
  const isModelText = step.builtin === undefined && error.reason !== 'STEP_LOST'
  const isTold =
    isModelText ||
    error.reason === 'CONDITION_FAILED' ||
    error.message.startsWith(`step '${step.name}`)
  const own = isTold ? error : error.withPrefix(`step '${step.name}': `)
  return nameMaker({ tensors, steps }, own, step)
}

/** Names the step that made what a step of a part refuses, where that one is not of the part: there nothing is known of it. */
function nameMakerOutside({ whole, steps }: PlanPart, error: ServeError): ServeError {
  const refusing = whole.steps.find(({ name }) => name === error.details.step)
  const refused = refusing?.inputs.find(({ name }) => name === error.details.field)
  const maker = whole.tensors[refused?.tensors[0] ?? -1]?.step
  const isOutside = maker !== undefined && !steps.includes(maker)
  return refusing !== undefined && isOutside ? nameMaker(whole, error, refusing) : error
}

function nameMaker(
  { tensors, steps }: Pick<EnsemblePlan, 'tensors' | 'steps'>,
  error: ServeError,
  step: PlanStep,
): ServeError {
  if (ENGINE_TEXTS.some((text) => error.message.startsWith(text))) {
    return error.withSuffix(` (step '${step.name}', model '${nameOf(step)}')`)
  }
  const { field } = error.details
  const refused = step.inputs.find(({ name }) => name === field)
  // Which one of several tensors it was is not known here.
  const [tensor = -1, another] = refused?.tensors ?? []
  const maker = another === undefined ? steps[tensors[tensor]?.step ?? -1] : undefined
  const made = maker?.outputs.find((output) => output.tensor === tensor)
  if (maker === undefined || made === undefined) return error
  return error.withSuffix(` (output '${made.name}' of step '${maker.name}')`)
}

/** Returns the name of what a step runs. */
function nameOf({ model, builtin }: PlanStep): string {
  return builtin?.config.name ?? model
}

/** Releases all tensors that an iteration still holds when its run fails. */
export function releaseTensors(iteration: Iteration, actions: RunAction[]): void {
  for (const held of iteration.tensors) {
    if (held !== undefined && held.uses > 0) release(held, actions)
  }
}

/** Makes the error for a response that lacks an output because the steps that make it were skipped. */
export function absentOutput(
  { tensors, steps }: Pick<EnsemblePlan, 'tensors' | 'steps'>,
  { name, tensors: sources }: Pick<PlanEnsembleTensor, 'name' | 'tensors'>,
): ServeError {
  const makers = sources.flatMap((tensor) => {
    const maker = steps[tensors[tensor]?.step ?? -1]
    // Tensors have the same index in the plan with the steps of a part.
    const { whole } = maker?.part ?? {}
    const within = whole?.steps[whole.tensors[tensor]?.step ?? -1]
    return (within ?? maker)?.name ?? []
  })
  const named = [...new Set(makers)].map((maker) => `'${maker}'`).join(', ')
  const text = `output '${name}': the steps that make it (${named}) were skipped, want it in every response unless it is optional`
  return new ServeError('OUTPUT_ABSENT', text, { details: { field: name } })
}

/** Makes the error for a response that was not expected: one before it was lost, it came twice, or it is one too many. */
export function unexpectedResponse({ step, responses }: StepExecution, index: number): ServeError {
  const problem =
    index === responses
      ? 'got a second response, want one because the model is not decoupled'
      : `got response ${index}, want response ${responses}`
  return new ServeError('RESPONSE_INVALID', `model '${nameOf(step)}': ${problem}`)
}
