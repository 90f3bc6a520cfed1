import type { MetricFamily, MetricSeries } from '../metrics-text.ts'
import type { StepLabels } from '../statistics/step-measures.ts'

const FAMILIES = [
  ['hedged', 'tutti_step_hedges_total', 'Step requests that were sent to a second replica too'],
  [
    'hedge won',
    'tutti_step_hedges_won_total',
    'Step requests that the second replica answered first',
  ],
  ['retried', 'tutti_step_retries_total', 'Attempts at a step after one that failed'],
  [
    'retry refused',
    'tutti_step_retries_refused_total',
    'Failures of a step that its budget of retries made final',
  ],
  ['fell back', 'tutti_step_fallbacks_total', 'Step requests that failed and went to the fallback'],
  ['defaulted', 'tutti_step_defaults_total', 'Step requests that failed and got the default'],
] as const

/** The events that are counted of the requests to a step. */
export type StepCount = (typeof FAMILIES)[number][0]

interface Counted {
  readonly labels: MetricSeries['labels']
  readonly counts: Record<StepCount, number>
}

/** The counters of what is done around the calls of steps, one of each for every step. */
export class StepCounts {
  readonly #steps = new Map<string, Counted>()

  /** Adds the step's series, at 0, unless they are there. */
  add(step: StepLabels): void {
    const labels = toLabels(step)
    const key = JSON.stringify(labels)
    if (!this.#steps.has(key)) this.#steps.set(key, { labels, counts: zeros() })
  }

  /** Drops the step's series. */
  remove(step: StepLabels): void {
    this.#steps.delete(JSON.stringify(toLabels(step)))
  }

  /** Counts nothing of a step that was removed meanwhile. */
  count(step: StepLabels, what: StepCount): void {
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

function zeros(): Counted['counts'] {
  return { hedged: 0, 'hedge won': 0, retried: 0, 'retry refused': 0, 'fell back': 0, defaulted: 0 }
}

function toLabels({ ensemble, step, model }: StepLabels): MetricSeries['labels'] {
  return Object.entries({ ensemble, step, model })
}
