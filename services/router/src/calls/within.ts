import type { ModelCall } from './model-call.ts'
import type { RequestCallContext } from './request-dependencies.ts'

/**
 * Makes the context of a call for some of the items of a step, or of one of its iterations. An ensemble that it runs tells observers
 * within which.
 */
export function contextWithin(
  context: RequestCallContext,
  { plan }: Pick<ModelCall['target'], 'plan'>,
  part: string,
): RequestCallContext {
  return plan === undefined ? context : { ...context, within: `${context.within ?? ''}[${part}]` }
}
