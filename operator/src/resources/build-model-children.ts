import {
  DEPLOYMENT,
  type Desired,
  HORIZONTAL_POD_AUTOSCALER,
  type HorizontalPodAutoscaler,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  type PodTemplateSpec,
  SERVICE,
  SERVICE_ACCOUNT,
  type Service,
} from '@tutti/kube'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
import { buildModelDeployment, buildPodTemplate } from './model-deployment.ts'
import type { ModelFacts } from './model-facts.ts'
import { mayHaveSeveral, type Scaling } from './model-scaling.ts'
import { toPlain } from './plain.ts'
import {
  buildBudget,
  buildNetworkPolicy,
  buildService,
  grpcPort,
  type ServingMetadata,
  servicePort,
} from './serving-children.ts'
import { stepLabels, stepSelector } from './step-labels.ts'
import { DIRECT_PORT, PORTS } from './step-settings.ts'

/**
 * Builds all children of a Model in the order in which they are applied: objects that pods need come before the Deployment. Pure;
 * equal input gives equal text.
 *
 * @param o.replicas - replicas to write; undefined if another client owns the number.
 * @param o.podTemplate - the pod template, if it is already built.
 */
export function buildModelChildren(
  facts: ModelFacts,
  o: {
    readonly scaling: Scaling
    readonly replicas: number | undefined
    readonly podTemplate?: PodTemplateSpec
  },
): readonly DesiredChild[] {
  const { scaling, replicas, podTemplate = buildPodTemplate(facts) } = o
  const serving = servingOf(facts)
  const { metadata } = serving
  const { network, transport } = facts.settings
  const routerPorts = transport === undefined ? [] : [DIRECT_PORT]
  const bounds = boundsOf(facts, scaling)
  const autoscaler = buildAutoscaler(serving, facts, scaling)
  return [
    desiredChild(SERVICE_ACCOUNT, { metadata, automountServiceAccountToken: false }),
    ...(network.isEnabled
      ? [desiredChild(NETWORK_POLICY, buildNetworkPolicy(serving, { network, routerPorts }))]
      : []),
    desiredChild(SERVICE, buildHeadless(serving)),
    ...(bounds === undefined
      ? []
      : [desiredChild(POD_DISRUPTION_BUDGET, buildBudget(serving, bounds))]),
    desiredChild(DEPLOYMENT, buildModelDeployment(facts, { replicas, podTemplate }), {
      handsOverReplicas: replicas === undefined,
      // Kubernetes makes no pod without it, and tries again ever less often.
      needs: [SERVICE_ACCOUNT],
    }),
    // After the Deployment, whose replicas it takes over.
    ...(autoscaler === undefined ? [] : [desiredChild(HORIZONTAL_POD_AUTOSCALER, autoscaler)]),
  ]
}

function servingOf({ childName, namespace, name }: ModelFacts): ServingMetadata {
  return {
    metadata: { name: childName, namespace, labels: stepLabels(name) },
    selector: stepSelector(name),
  }
}

/** Builds the headless Service: a client that calls a model directly sees its pods. Routers find them by their heartbeats. */
function buildHeadless(serving: ServingMetadata): Desired<Service> {
  const { metadata, spec } = buildService(serving, [
    grpcPort('grpc', PORTS.grpc),
    servicePort('http', PORTS.http),
    servicePort('metrics', PORTS.metrics),
  ])
  return { metadata, spec: { clusterIP: 'None', ...spec } }
}

function boundsOf({ spec }: ModelFacts, scaling: Scaling) {
  const { disruptionBudget } = spec
  if (disruptionBudget === undefined && !mayHaveSeveral(scaling)) return undefined
  return toPlain(disruptionBudget ?? { maxUnavailable: 1 })
}

function buildAutoscaler(
  { metadata }: ServingMetadata,
  facts: ModelFacts,
  scaling: Scaling,
): Desired<HorizontalPodAutoscaler> | undefined {
  if (scaling.provider !== 'HPA') return undefined
  const { metrics = [], behavior } = facts.spec.scaling ?? {}
  return {
    metadata,
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: facts.childName },
      minReplicas: scaling.min,
      maxReplicas: scaling.max,
      metrics: metrics.map((metric) => ({ ...toPlain(metric) })),
      ...(behavior !== undefined && { behavior: { ...toPlain(behavior) } }),
    },
  }
}
