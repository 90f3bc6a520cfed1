import type { PodSpec } from '@tutti/kube'

/**
 * Pods of one template apart from each other: on different nodes, and in different zones where nodes have them, as far as there
 * is room. Zones are no second constraint: the scheduler leaves a node that lacks the label of one out of all of them.
 */
export function spreadPods(
  matchLabels: Readonly<Record<string, string>>,
): Pick<PodSpec, 'affinity' | 'topologySpreadConstraints'> {
  const same = { labelSelector: { matchLabels }, matchLabelKeys: ['pod-template-hash'] }
  const elsewhere = { ...same, topologyKey: 'topology.kubernetes.io/zone' }
  return {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: elsewhere },
        ],
      },
    },
    topologySpreadConstraints: [
      {
        ...same,
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
      },
    ],
  }
}
