import type { StepHistograms } from './statistics.ts'

/** Sums over the requests of a step that were answered. */
export interface StepTotals {
  readonly step: string
  readonly count: number
  readonly queueSeconds: number
  readonly transferSeconds: number
  readonly computeSeconds: number
}

/** Sums up what was counted of each step of an ensemble so far. */
export function stepTotals({ steps }: StepHistograms, ensemble: string): readonly StepTotals[] {
  return steps
    .filter(({ labels }) => labels.ensemble === ensemble)
    .map(({ labels: { step }, parts: { queue, transfer, compute } }) => ({
      step,
      count: compute.count,
      queueSeconds: queue.sum,
      transferSeconds: transfer.sum,
      computeSeconds: compute.sum,
    }))
}
