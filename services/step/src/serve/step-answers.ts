import { type StepLoad, toDescriptionJson } from '@tutti/ensemble'
import type { Json } from '@tutti/model-config'
import type { JsonAnswers } from '@tutti/server'
import type { Step } from '../step.ts'

/** What a step answers on its metrics port, to the operator and to people. It is asked already while models load. */
export class StepAnswers {
  readonly #replica: string
  #step: Step | undefined
  readonly byPath: JsonAnswers = new Map<string, () => Json>([
    ['/tutti/v1/served', () => this.#served()],
    ['/tutti/v1/load', () => toStepLoad(this.#step)],
  ])

  constructor(replica: string) {
    this.#replica = replica
  }

  /** From now on there is a step; its models may still be loading. */
  begin(step: Step): void {
    this.#step = step
  }

  #served(): Json {
    const models = this.#step?.served() ?? []
    return toDescriptionJson({ replica: this.#replica, models })
  }
}

/** Sums over the versions of a model. Reads counters that the schedulers keep anyway. */
function toStepLoad(step: Step | undefined): StepLoad {
  const models = new Map<string, { inFlight: number; queued: number; slots: number }>()
  for (const { model, inFlight, queued, slots } of step?.load().models ?? []) {
    const sum = models.get(model) ?? { inFlight: 0, queued: 0, slots: 0 }
    // A scheduler counts what waits as in flight too.
    sum.inFlight += Math.max(0, inFlight - queued)
    sum.queued += queued
    sum.slots += slots
    models.set(model, sum)
  }
  return { models: [...models].map(([name, load]) => ({ name, ...load })) }
}
