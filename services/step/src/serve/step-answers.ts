import { type StepLoad, toDescriptionJson } from '@tutti/api'
import type { JsonAnswers } from '@tutti/server'
import type { Step } from '../step.ts'

/**
 * Makes the answers of a step on its metrics port, for the operator and for people. They are available while models load.
 *
 * @param own - names of the step in the answers.
 * @param getStep - finds the step; undefined until there is one.
 */
export function createStepAnswers(
  own: { readonly replica: string; readonly host: string },
  getStep: () => Step | undefined,
): JsonAnswers {
  return new Map([
    ['/tutti/v1/served', () => toDescriptionJson({ ...own, models: getStep()?.served() ?? [] })],
    [
      '/tutti/v1/start',
      () => ({ loads: (getStep()?.models.loads() ?? []).map((load) => ({ ...load })) }),
    ],
    ['/tutti/v1/load', () => toStepLoad(getStep())],
  ])
}

const NO_LOAD = { inFlight: 0, queued: 0, slots: 0, requests: 0 }

/** Sums over the versions of a model. Reads counters that the schedulers keep anyway. */
function toStepLoad(step: Step | undefined): StepLoad {
  const models = new Map<string, typeof NO_LOAD>()
  for (const { model, inFlight, queued, slots, requests } of step?.load().models ?? []) {
    const sum = models.get(model) ?? { ...NO_LOAD }
    // A scheduler counts what waits as in flight too.
    sum.inFlight += Math.max(0, inFlight - queued)
    sum.queued += queued
    sum.slots += slots
    sum.requests += requests
    models.set(model, sum)
  }
  return { models: [...models].map(([name, load]) => ({ name, ...load })) }
}
