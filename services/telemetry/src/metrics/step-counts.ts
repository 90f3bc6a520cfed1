import type { StepCount } from '@tutti/tensor'
import type { MetricFamily, MetricSeries } from '../metrics-text.ts'
import type { StepLabels } from '../statistics/step-measures.ts'

/** The families, with their help. */
const FAMILIES: Readonly<Record<StepCount, readonly [name: string, help: string]>> = {
  hedged: ['tutti_step_hedges_total', 'Step requests that were sent to a second replica too'],
  hedgeWon: ['tutti_step_hedges_won_total', 'Step requests that the second replica answered first'],
  retried: ['tutti_step_retries_total', 'Attempts at a step after one that failed'],
  retryRefused: [
    'tutti_step_retries_refused_total',
    'Failures of a step that its budget of retries made final',
  ],
  fellBack: ['tutti_step_fallbacks_total', 'Step requests that failed and went to the fallback'],
  defaulted: ['tutti_step_defaults_total', 'Step requests that failed and got the default'],
  timedOut: ['tutti_step_timeouts_total', 'Step requests that their own timeout ended'],
  skipped: [
    'tutti_step_skips_total',
    'Step requests that were skipped: their condition did not hold, or an input was absent',
  ],
  items: ['tutti_step_items_total', 'Items for which a step was to run'],
  itemCalls: ['tutti_step_item_calls_total', 'Calls of a step for items, one or a batch each'],
  failedItems: ['tutti_step_failed_items_total', 'Items whose call failed'],
  iterations: ['tutti_step_iterations_total', 'Iterations of a step that repeats'],
}

interface Counted {
  readonly labels: MetricSeries['labels']
  readonly counts: Partial<Record<StepCount, number>>
}

/** The counters of what is done around the calls of steps, one of each for every step. */
export class StepCounts {
  readonly #steps = new Map<string, Counted>()

  /** Adds the step's series, at 0, unless they are there. */
  add(step: StepLabels): void {
    const labels = toLabels(step)
    const key = JSON.stringify(labels)
    if (!this.#steps.has(key)) this.#steps.set(key, { labels, counts: {} })
  }

  /** Drops the step's series. */
  remove(step: StepLabels): void {
    this.#steps.delete(JSON.stringify(toLabels(step)))
  }

  /** Counts nothing of a step that was removed meanwhile. */
  count(step: StepLabels, what: StepCount, count: number): void {
    const counts = this.#steps.get(JSON.stringify(toLabels(step)))?.counts
    if (counts !== undefined) counts[what] = (counts[what] ?? 0) + count
  }

  /** Returns the counts as Prometheus families. */
  families(): readonly MetricFamily[] {
    const steps = [...this.#steps.values()]
    const whats = Object.keys(FAMILIES).filter(isStepCount)
    return whats.map((what) => {
      const [name, help] = FAMILIES[what]
      const series = steps.map(({ labels, counts }) => ({ labels, value: counts[what] ?? 0 }))
      return { name, help, type: 'counter', series }
    })
  }
}

function isStepCount(key: string): key is StepCount {
  return key in FAMILIES
}

function toLabels({ ensemble, step, model }: StepLabels): MetricSeries['labels'] {
  return Object.entries({ ensemble, step, model })
}
