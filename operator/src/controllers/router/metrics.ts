import type { CounterMetric, Metrics } from '@tutti/chassis'

/** Registers the counter of decisions about the replicas of built-ins. */
export function createBuiltinsScalings(metrics: Metrics): CounterMetric<'direction'> {
  return metrics.counter({
    name: 'tutti_operator_builtins_scalings_total',
    help: 'Decisions of the provider Native about pods of built-ins by direction.',
    labels: ['direction'],
  })
}
