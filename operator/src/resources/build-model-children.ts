import {
  DEPLOYMENT,
  type Desired,
  HORIZONTAL_POD_AUTOSCALER,
  type HorizontalPodAutoscaler,
  NETWORK_POLICY,
  type NetworkPolicy,
  POD_DISRUPTION_BUDGET,
  type PodDisruptionBudget,
  SERVICE,
  SERVICE_ACCOUNT,
  type Service,
  type ServiceAccount,
} from '@tutti/kube'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
import { buildModelDeployment } from './model-deployment.ts'
import type { ModelParts } from './model-parts.ts'
import { mayHaveSeveral, type Scaling } from './model-scaling.ts'
import { toPlain } from './plain.ts'
import { stepLabels, stepSelector } from './step-labels.ts'
import { PORTS } from './step-settings.ts'

/**
 * All children of a Model, in the order in which they are made: what pods need comes before them. Pure: the same input gives the
 * same text.
 *
 * @param replicas - undefined where somebody else owns the number.
 */
export function buildModelChildren(
  parts: ModelParts,
  o: { readonly scaling: Scaling; readonly replicas: number | undefined },
): readonly DesiredChild[] {
  const { scaling, replicas } = o
  const budget = buildBudget(parts, scaling)
  const autoscaler = buildAutoscaler(parts, scaling)
  return [
    desiredChild(SERVICE_ACCOUNT, buildServiceAccount(parts)),
    ...(parts.settings.network.isEnabled
      ? [desiredChild(NETWORK_POLICY, buildNetworkPolicy(parts))]
      : []),
    desiredChild(SERVICE, buildService(parts)),
    ...(budget === undefined ? [] : [desiredChild(POD_DISRUPTION_BUDGET, budget)]),
    desiredChild(DEPLOYMENT, buildModelDeployment(parts, replicas), {
      handsOverReplicas: replicas === undefined,
      // Kubernetes makes no pod without it, and tries again ever less often.
      needs: [SERVICE_ACCOUNT],
    }),
    // After the Deployment, whose replicas it takes over.
    ...(autoscaler === undefined ? [] : [desiredChild(HORIZONTAL_POD_AUTOSCALER, autoscaler)]),
  ]
}

function metadataOf({ childName: name, namespace, ...parts }: ModelParts) {
  return { name, namespace, labels: stepLabels(parts.name) }
}

function buildServiceAccount(parts: ModelParts): Desired<ServiceAccount> {
  return { metadata: metadataOf(parts), automountServiceAccountToken: false }
}

/** Headless: a client that calls a model directly sees its pods. Routers find them by their heartbeats. */
function buildService(parts: ModelParts): Desired<Service> {
  return {
    metadata: metadataOf(parts),
    spec: {
      clusterIP: 'None',
      selector: stepSelector(parts.name),
      ports: [
        {
          name: 'grpc',
          port: PORTS.grpc,
          targetPort: 'grpc',
          protocol: 'TCP',
          appProtocol: 'kubernetes.io/h2c',
        },
        { name: 'http', port: PORTS.http, targetPort: 'http', protocol: 'TCP' },
        { name: 'metrics', port: PORTS.metrics, targetPort: 'metrics', protocol: 'TCP' },
      ],
    },
  }
}

function buildBudget(
  parts: ModelParts,
  scaling: Scaling,
): Desired<PodDisruptionBudget> | undefined {
  const { disruptionBudget } = parts.spec
  if (disruptionBudget === undefined && !mayHaveSeveral(scaling)) return undefined
  const { minAvailable, maxUnavailable } = disruptionBudget ?? { maxUnavailable: 1 }
  return {
    metadata: metadataOf(parts),
    spec: {
      selector: { matchLabels: stepSelector(parts.name) },
      ...(minAvailable !== undefined && { minAvailable }),
      ...(maxUnavailable !== undefined && { maxUnavailable }),
      // Pods that serve nothing would hold up a drain for ever.
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  }
}

function buildAutoscaler(
  parts: ModelParts,
  scaling: Scaling,
): Desired<HorizontalPodAutoscaler> | undefined {
  if (scaling.provider !== 'HPA') return undefined
  const { metrics = [], behavior } = parts.spec.scaling ?? {}
  return {
    metadata: metadataOf(parts),
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: parts.childName },
      minReplicas: scaling.min,
      maxReplicas: scaling.max,
      metrics: metrics.map((metric) => ({ ...toPlain(metric) })),
      ...(behavior !== undefined && { behavior: { ...toPlain(behavior) } }),
    },
  }
}

/**
 * Who may connect: pods of the namespace to the listeners, the operator and those who scrape to the metrics. What pods connect to is
 * not ruled: models call what they need.
 */
function buildNetworkPolicy(parts: ModelParts): Desired<NetworkPolicy> {
  const { operatorNamespace, operatorLabels, scrapers } = parts.settings.network
  const operator = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } },
    podSelector: { matchLabels: operatorLabels },
  }
  const inNamespace = { podSelector: {} }
  return {
    metadata: metadataOf(parts),
    spec: {
      podSelector: { matchLabels: stepSelector(parts.name) },
      policyTypes: ['Ingress'],
      ingress: [
        {
          from: [inNamespace],
          ports: [
            { port: PORTS.http, protocol: 'TCP' },
            { port: PORTS.grpc, protocol: 'TCP' },
          ],
        },
        {
          from: [inNamespace, operator, ...scrapers],
          ports: [{ port: PORTS.metrics, protocol: 'TCP' }],
        },
      ],
    },
  }
}
