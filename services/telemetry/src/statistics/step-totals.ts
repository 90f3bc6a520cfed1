import type { StepHistograms } from './statistics.ts'

/** Sums over the requests of a step that were answered. */
export interface StepTotals {
  readonly step: string
  readonly count: number
  readonly queueSeconds: number
  readonly transferSeconds: number
  readonly computeSeconds: number
}

/** Sums up what was counted of each step of an ensemble so far, over the model of the step and its fallback. */
export function stepTotals({ steps }: StepHistograms, ensemble: string): readonly StepTotals[] {
  const own = steps.filter(({ labels }) => labels.ensemble === ensemble)
  return [...Map.groupBy(own, ({ labels }) => labels.step)].map(([step, counted]) => {
    const sum = (valueOf: (one: (typeof counted)[number]) => number): number =>
      counted.reduce((total, one) => total + valueOf(one), 0)
    return {
      step,
      count: sum(({ parts }) => parts.compute.count),
      queueSeconds: sum(({ parts }) => parts.queue.sum),
      transferSeconds: sum(({ parts }) => parts.transfer.sum),
      computeSeconds: sum(({ parts }) => parts.compute.sum),
    }
  })
}
