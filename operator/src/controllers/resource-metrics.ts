import type { ModelStatus } from '@tutti/api'
import type { Metrics } from '@tutti/chassis'
import { ROUTER_NAMES } from '../resources/router-names.ts'
import type { Caches } from './caches.ts'

const LABELS = ['kind', 'resource_namespace', 'name'] as const

/** The parts that the metrics read of a Model, an Ensemble or a Router. */
interface ShownResource {
  readonly metadata: { readonly namespace?: string; readonly name: string }
  readonly status?: Pick<
    ModelStatus,
    'conditions' | 'desiredReplicas' | 'replicas' | 'readyReplicas'
  >
}

/**
 * Registers metrics of Models, Ensembles and Routers. Only resources with a fault have series, because an installation may have
 * ten thousand. A resource without a condition Ready yet has no fault.
 *
 * @param caches - the caches to read at each scrape.
 */
export function createResourceMetrics(
  metrics: Metrics,
  caches: Pick<Caches, 'models' | 'ensembles' | 'routers' | 'deployments'>,
): void {
  const shown = (): readonly (readonly [kind: string, resource: ShownResource])[] => [
    ...caches.models.list().map((one) => ['Model', one] as const),
    ...caches.ensembles.list().map((one) => ['Ensemble', one] as const),
    ...caches.routers.list().map((one) => ['Router', one] as const),
  ]
  /** Finds how many replicas are wanted. Of a Router the Deployment alone knows: the status counts the pods that were made. */
  const wantedOf = (kind: string, { metadata, status }: ShownResource): number => {
    if (kind !== 'Router') return status?.desiredReplicas ?? status?.replicas ?? 0
    const key = `${metadata.namespace}/${ROUTER_NAMES.router}`
    return caches.deployments.get(key)?.spec.replicas ?? 0
  }
  metrics.readGauge({
    name: 'tutti_operator_resource_not_ready',
    help: '1 for each Model, Ensemble and Router whose condition Ready is not True, with its reason.',
    labels: [...LABELS, 'reason'],
    read: () =>
      shown().flatMap(([kind, one]) => {
        const ready = one.status?.conditions?.find(({ type }) => type === 'Ready')
        if (ready === undefined || ready.status === 'True' || isIdle(one)) return []
        return [{ labels: { ...labelsOf(kind, one), reason: ready.reason }, value: 1 }]
      }),
  })
  metrics.readGauge({
    name: 'tutti_operator_replicas_missing',
    help: 'Pods that each Model and Router lacks, where it lacks any.',
    labels: LABELS,
    read: () =>
      shown().flatMap(([kind, one]) => {
        const missing = wantedOf(kind, one) - (one.status?.readyReplicas ?? 0)
        return missing > 0 ? [{ labels: labelsOf(kind, one), value: missing }] : []
      }),
  })
}

function labelsOf(kind: string, { metadata }: ShownResource) {
  return { kind, resource_namespace: metadata.namespace ?? '', name: metadata.name }
}

/** Tells whether a Model wants no pods: it is not ready, and nothing is wrong with it. */
function isIdle({ status }: ShownResource): boolean {
  return status?.desiredReplicas === 0
}
