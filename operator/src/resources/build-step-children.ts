import type { ModelSpec } from '@tutti/api'
import {
  DEPLOYMENT,
  type Deployment,
  type Desired,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  type PodTemplateSpec,
  SERVICE,
  SERVICE_ACCOUNT,
  type Service,
} from '@tutti/kube'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
import { buildAutoscaler } from './autoscaler.ts'
import { mayHaveSeveral, type Scaling } from './model-scaling.ts'
import { toPlain } from './plain.ts'
import { buildBudget, buildNetworkPolicy, type ServingMetadata } from './serving-children.ts'
import { DIRECT_PORT, type StepPodSettings } from './step-settings.ts'

/** Beyond the time of a load: for scheduling, the pull of the image and the fetch. */
const START_S = 600
const OLD_REPLICA_SETS = 3

/** The pods of a Model, or those with the built-ins of a namespace. */
export interface StepSet extends ServingMetadata {
  readonly settings: StepPodSettings
  /** Fields about the pods as a whole. */
  readonly spec: Pick<ModelSpec, 'scaling' | 'disruptionBudget' | 'rollout'>
  readonly scaling: Scaling
  /** Replicas to write; undefined if an autoscaler or a user sets them. */
  readonly replicas: number | undefined
  /** True to take old pods away before there are new ones. */
  readonly replacesFirst?: boolean
  readonly podTemplate: PodTemplateSpec
  /** Labels of the Deployment that name the Models in its pods. */
  readonly serves?: Readonly<Record<string, string>>
  /** Longest time of a load, in seconds. */
  readonly loadS: number
  readonly services: readonly Desired<Service>[]
}

/**
 * Builds the Deployment of steps and all objects around it, in the order in which they are applied: objects that pods need come
 * before the Deployment. Pure; equal input gives equal text.
 */
export function buildStepChildren(set: StepSet): readonly DesiredChild[] {
  const { metadata, replicas, services } = set
  const { network, transport } = set.settings
  const routerPorts = transport === undefined ? [] : [DIRECT_PORT]
  const bounds = boundsOf(set)
  return [
    desiredChild(SERVICE_ACCOUNT, { metadata, automountServiceAccountToken: false }),
    ...(network.isEnabled
      ? [desiredChild(NETWORK_POLICY, buildNetworkPolicy(set, { network, routerPorts }))]
      : []),
    ...services.map((service) => desiredChild(SERVICE, service)),
    ...(bounds === undefined
      ? []
      : [desiredChild(POD_DISRUPTION_BUDGET, buildBudget(set, bounds))]),
    desiredChild(DEPLOYMENT, buildDeployment(set), {
      handsOverReplicas: replicas === undefined,
      // Kubernetes makes no pod without it, and tries again ever less often.
      needs: [SERVICE_ACCOUNT],
    }),
    ...buildAutoscaler(set, set.scaling, set.spec.scaling ?? {}),
  ]
}

function buildDeployment(set: StepSet): Desired<Deployment> {
  const { metadata, selector, replicas, podTemplate, loadS, serves } = set
  const rollingUpdate = strategyOf(set)
  return {
    metadata: { ...metadata, labels: { ...metadata.labels, ...serves } },
    spec: {
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: selector },
      strategy: { type: 'RollingUpdate', rollingUpdate },
      progressDeadlineSeconds: loadS + START_S,
      revisionHistoryLimit: OLD_REPLICA_SETS,
      template: podTemplate,
    },
  }
}

function strategyOf({ spec, replacesFirst }: StepSet) {
  const { maxSurge = 1, maxUnavailable = 0 } = spec.rollout ?? {}
  if (replacesFirst !== true) return { maxSurge, maxUnavailable }
  const isNone = maxUnavailable === 0 || maxUnavailable === '0%'
  return { maxSurge: 0, maxUnavailable: isNone ? 1 : maxUnavailable }
}

function boundsOf({ spec: { disruptionBudget }, scaling }: StepSet) {
  if (disruptionBudget === undefined && !mayHaveSeveral(scaling)) return undefined
  return toPlain(disruptionBudget ?? { maxUnavailable: 1 })
}
