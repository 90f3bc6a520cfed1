import { plainName } from '@tutti/model-config'
import type { Replicas, ShownReplica } from './api/replica.ts'
import type { ConsoleSource, ReplicaTotals } from './console-source.ts'

/** Most replicas in one answer. */
const MAX_REPLICAS = 200

type Totals = ShownReplica['totals'][number]

/**
 * Reads the replicas of a model, or of the models of an ensemble's steps, with the totals of their calls.
 *
 * @param o.models - the models whose replicas are wanted; only models that the caller may see.
 * @param o.ensemble - the ensemble whose calls count; undefined for a model, whose calls are summed over all callers.
 */
export function readReplicas(
  source: Pick<ConsoleSource, 'replicasOf' | 'replicaTotals'>,
  o: { readonly models: ReadonlySet<string>; readonly ensemble: string | undefined },
): Replicas {
  const { models, ensemble } = o
  const found = source.replicasOf(models)
  const wanted = source
    .replicaTotals()
    .filter((one) => (ensemble === undefined || one.ensemble === ensemble) && models.has(one.model))
  const totals = Map.groupBy(wanted, ({ replica }) => replica)
  const all = found.slice(0, MAX_REPLICAS).map((one) => {
    const { load, ...rest } = one
    const own = totals.get(one.replica) ?? []
    const counts = ensemble === undefined ? sum(own) : own.map(toTotals)
    return { ...rest, ...(load && { load }), totals: counts }
  })
  return { all, leftOut: found.length - all.length }
}

function toTotals({
  step,
  requests,
  failures,
  queueMs,
  transferMs,
  computeMs,
}: ReplicaTotals): Totals {
  return { step: plainName(step), requests, failures, queueMs, transferMs, computeMs }
}

/** Sums totals; none if there are none. */
function sum(all: readonly ReplicaTotals[]): readonly Totals[] {
  if (all.length === 0) return []
  const of = (pick: (one: ReplicaTotals) => number): number =>
    all.reduce((total, one) => total + pick(one), 0)
  return [
    {
      step: '',
      requests: of((one) => one.requests),
      failures: of((one) => one.failures),
      queueMs: of((one) => one.queueMs),
      transferMs: of((one) => one.transferMs),
      computeMs: of((one) => one.computeMs),
    },
  ]
}
