import type { MetricFamily, MetricSeries } from '../metrics-text.ts'
import type { StepHistograms } from '../statistics/statistics.ts'
import type { StepLabels } from '../statistics/step-measures.ts'

const PARTS = [
  ['queue', 'Time that a step request waited for an instance'],
  ['transfer', "Time that a step's tensors were on their way"],
  ['compute', 'Time that a step took to compute'],
] as const

/** Returns the histograms of all steps as Prometheus families. */
export function stepFamilies({ steps }: StepHistograms): readonly MetricFamily[] {
  return PARTS.map(([part, help]) => ({
    name: `tutti_step_${part}_seconds`,
    help,
    type: 'histogram',
    series: steps.flatMap(({ labels, parts }) => parts[part].series(toLabels(labels))),
  }))
}

function toLabels({ ensemble, step, model }: StepLabels): MetricSeries['labels'] {
  return Object.entries({ ensemble, step, model })
}
