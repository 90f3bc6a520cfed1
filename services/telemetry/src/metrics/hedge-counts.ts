import type { MetricFamily, MetricSeries } from '../metrics-text.ts'
import type { StepLabels } from '../statistics/step-measures.ts'

const FAMILIES = [
  ['sent', 'tutti_step_hedges_total', 'Step requests that were sent to a second replica too'],
  ['won', 'tutti_step_hedges_won_total', 'Step requests that the second replica answered first'],
] as const

/** The events that are counted of a step request that a second replica was asked for. */
export type HedgeCount = (typeof FAMILIES)[number][0]

interface Counted {
  readonly labels: MetricSeries['labels']
  readonly counts: Record<HedgeCount, number>
}

/** The counters of hedges, one of each for every step. */
export class HedgeCounts {
  readonly #steps = new Map<string, Counted>()

  /** Adds the step's series, at 0, unless they are there. */
  add(step: StepLabels): void {
    const labels = toLabels(step)
    const key = JSON.stringify(labels)
    if (!this.#steps.has(key)) this.#steps.set(key, { labels, counts: { sent: 0, won: 0 } })
  }

  /** Drops the step's series. */
  remove(step: StepLabels): void {
    this.#steps.delete(JSON.stringify(toLabels(step)))
  }

  /** Counts nothing of a step that was removed meanwhile. */
  count(step: StepLabels, what: HedgeCount): void {
    const counted = this.#steps.get(JSON.stringify(toLabels(step)))
    if (counted !== undefined) counted.counts[what] += 1
  }

  /** Returns the counts as Prometheus families. */
  families(): readonly MetricFamily[] {
    const steps = [...this.#steps.values()]
    return FAMILIES.map(([what, name, help]) => ({
      name,
      help,
      type: 'counter',
      series: steps.map(({ labels, counts }) => ({ labels, value: counts[what] })),
    }))
  }
}

function toLabels({ ensemble, step, model }: StepLabels): MetricSeries['labels'] {
  return Object.entries({ ensemble, step, model })
}
