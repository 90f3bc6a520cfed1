import type { ServeError } from '@tutti/errors'
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

/**
 * Says in an error in which items or iteration of a step it happened.
 *
 * @param name - the items of the step in words, before the text.
 */
export function locateError(error: ServeError, name: string, part: string): ServeError {
  const named = error.withPrefix(`${name}: `)
  // The details that an ensemble within gives are about its own steps, and stay.
  return error.details.ensemble === undefined
    ? named.withDetails({ item: part })
    : named.withinItems(part)
}
