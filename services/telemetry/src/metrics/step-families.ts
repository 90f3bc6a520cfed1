import type { MetricFamily, MetricSeries } from '../metrics-text.ts'
import type { StepHistograms } from '../statistics/statistics.ts'
import { BUCKETS_S } from '../statistics/step-measures.ts'

const PARTS = [
  ['queue', 'Time that a step request waited for an instance'],
  ['transfer', "Time that a step's tensors were on their way"],
  ['compute', 'Time that a step took to compute'],
] as const

type Step = StepHistograms['steps'][number]
type Part = (typeof PARTS)[number][0]

/** The histograms of all steps as Prometheus families. */
export function stepFamilies({ steps }: StepHistograms): readonly MetricFamily[] {
  return PARTS.map(([part, help]) => ({
    name: `tutti_step_${part}_seconds`,
    help,
    type: 'histogram',
    series: steps.flatMap((step) => toSeries(step, part)),
  }))
}

function toSeries({ labels: { ensemble, step, model }, parts }: Step, part: Part): MetricSeries[] {
  const labels = [
    ['ensemble', ensemble],
    ['step', step],
    ['model', model],
  ] as const
  const { counts, sum, exemplars } = parts[part]
  let count = 0
  const buckets = counts.map((counted, i): MetricSeries => {
    count += counted
    const le = ['le', i < BUCKETS_S.length ? String(BUCKETS_S[i]) : '+Inf'] as const
    const bucket = { suffix: '_bucket', labels: [le, ...labels], value: count } as const
    return { ...bucket, exemplar: exemplars?.[i] }
  })
  return [
    ...buckets,
    { suffix: '_sum', labels, value: sum },
    { suffix: '_count', labels, value: count },
  ]
}
