import type { ModelStatus } from '@tutti/api'
import type { CounterMetric, Metrics } from '@tutti/chassis'

const READY = ['True', 'False', 'Unknown'] as const

/** The counters of the Model controller. */
export interface ModelMetrics {
  /** Counter of the ControllerRevisions that were accepted. */
  readonly accepted: CounterMetric<never>
  /** Counter of the pods whose readiness gate was opened. */
  readonly opened: CounterMetric<never>
  readonly scalings: CounterMetric<'direction'>
}

/** Registers the metrics of Models. @param statuses - function that returns the statuses of all Models at a scrape. */
export function createModelMetrics(
  metrics: Metrics,
  statuses: () => Iterable<ModelStatus | undefined>,
): ModelMetrics {
  metrics.readGauge({
    name: 'tutti_operator_models',
    help: 'Models by their condition Ready.',
    labels: ['ready'],
    read: () => {
      const counts = { True: 0, False: 0, Unknown: 0 }
      for (const status of statuses()) {
        counts[status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'Unknown'] += 1
      }
      return READY.map((ready) => ({ labels: { ready }, value: counts[ready] }))
    },
  })
  return {
    accepted: metrics.counter({
      name: 'tutti_operator_revisions_accepted_total',
      help: 'Revisions of Models that were accepted.',
    }),
    opened: metrics.counter({
      name: 'tutti_operator_pods_opened_total',
      help: 'Pods whose readiness gate was opened.',
    }),
    scalings: metrics.counter({
      name: 'tutti_operator_model_scalings_total',
      help: 'Decisions of the provider Native by direction.',
      labels: ['direction'],
    }),
  }
}
