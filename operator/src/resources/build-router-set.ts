import { toAmount } from '@tutti/api'
import {
  DEPLOYMENT,
  type Deployment,
  type Desired,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  ROLE,
  ROLE_BINDING,
  type RoleBinding,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Service,
} from '@tutti/kube'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
import { type AutoscalerFields, buildAutoscaler } from './autoscaler.ts'
import { mayHaveSeveral } from './model-scaling.ts'
import {
  buildRouterDeployment,
  consoleOf,
  type RouterFacts,
  scalingOfRouter,
} from './router-deployment.ts'
import { buildEdgeSecret, type ExposedEnsembles } from './router-edge.ts'
import {
  EDGE_PORTS,
  ROUTER_LABELS,
  ROUTER_NAMES,
  ROUTER_PORT_NAMES,
  ROUTER_SELECTOR,
} from './router-names.ts'
import {
  buildBudget,
  buildNetworkPolicy,
  buildService,
  grpcPort,
  ofNamespace,
  type ServingMetadata,
  servicePort,
} from './serving-children.ts'
import { PORTS } from './step-settings.ts'

/**
 * Builds all children of a Router in the order in which they are applied: objects that pods need come before the Deployment.
 * Pure.
 */
export function buildRouterSet(
  facts: RouterFacts,
  exposed: ExposedEnsembles,
): readonly DesiredChild[] {
  const { namespace, spec } = facts
  const { metadata } = servingOf(namespace)
  const scaling = scalingOfRouter(facts)
  const deployment = buildRouterDeployment(facts)
  const isShown = consoleOf(facts) !== 'None'
  const rules = [READS_REVISIONS, READS_EDGE, ...(isShown ? [LISTS_RESOURCES] : [])]
  return [
    desiredChild(SERVICE_ACCOUNT, { metadata, automountServiceAccountToken: false }),
    desiredChild(ROLE, { metadata, rules }),
    desiredChild(ROLE_BINDING, buildRoleBinding(namespace, metadata)),
    buildExposure(namespace, exposed),
    ...buildClientPolicy(facts),
    desiredChild(SERVICE, buildGrpcService(namespace)),
    desiredChild(SERVICE, buildHttpService(namespace)),
    // One pod alone could never be moved from its node.
    ...(mayHaveSeveral(scaling)
      ? [
          desiredChild(
            POD_DISRUPTION_BUDGET,
            buildBudget(servingOf(namespace), { maxUnavailable: 1 }),
          ),
        ]
      : []),
    desiredChild(DEPLOYMENT, deployment, { handsOverReplicas: facts.replicas === undefined }),
    ...buildAutoscaler(servingOf(namespace), scaling, {
      metrics: toDefaultMetrics(deployment),
      ...spec.scaling,
    }),
  ]
}

/** Share of the processor time of a router at which another pod is added. */
const BUSY = 0.7
const MAIN = 'main'

/**
 * Builds the metric of a router that names none. A share of the request would say little: requests are far below what a router takes
 * when it is busy. It serves on one thread, so a core is all that it can use.
 */
function toDefaultMetrics({ spec }: Desired<Deployment>): AutoscalerFields['metrics'] {
  const main = spec?.template?.spec?.containers?.find(({ name }) => name === MAIN)
  const limit = main?.resources?.limits?.['cpu'] ?? 1
  const cores = Math.min(1, toAmount(limit) ?? 1)
  const averageValue = `${Math.max(1, Math.floor(cores * BUSY * 1000))}m`
  const target = { type: 'AverageValue' as const, averageValue }
  // The container alone: a proxy beside it would count otherwise.
  const containerResource = { name: 'cpu', container: MAIN, target }
  return [{ type: 'ContainerResource', containerResource }]
}

/** Builds the Secret that tells routers which Ensembles are exposed, and which tokens and ServiceAccounts may call them. Pure. */
export function buildExposure(namespace: string, exposed: ExposedEnsembles): DesiredChild {
  return desiredChild(SECRET, buildEdgeSecret(namespace, exposed))
}

/** Builds the NetworkPolicy of the routers; an empty list if the installation has no NetworkPolicies. Pure. */
export function buildClientPolicy({
  namespace,
  defaults: { network },
  spec,
}: RouterFacts): readonly DesiredChild[] {
  if (!network.isEnabled) return []
  const policy = {
    network,
    clients: (spec.clientNamespaces ?? []).map(ofNamespace),
    openPorts: [EDGE_PORTS.edgeHttp, EDGE_PORTS.edgeGrpc],
  }
  return [desiredChild(NETWORK_POLICY, buildNetworkPolicy(servingOf(namespace), policy))]
}

const READS_REVISIONS = {
  apiGroups: ['apps'],
  resources: ['controllerrevisions'],
  verbs: ['get', 'list', 'watch'],
}

/** A kubelet would bring it as a file up to a minute later, and a token that was revoked would count so long. */
const READS_EDGE = {
  apiGroups: [''],
  resources: ['secrets'],
  resourceNames: [ROUTER_NAMES.edge],
  verbs: ['get', 'list', 'watch'],
}

/** The console shows which of them are not ready, and why. */
const LISTS_RESOURCES = {
  apiGroups: ['tutti.dev'],
  resources: ['models', 'ensembles'],
  verbs: ['list'],
}

function servingOf(namespace: string, name: string = ROUTER_NAMES.router): ServingMetadata {
  return { metadata: { name, namespace, labels: ROUTER_LABELS }, selector: ROUTER_SELECTOR }
}

function buildRoleBinding(
  namespace: string,
  metadata: ServingMetadata['metadata'],
): Desired<RoleBinding> {
  const { router: name } = ROUTER_NAMES
  return {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  }
}

/**
 * Builds the Service of gRPC. It is a Service of its own, because Traefik's annotation counts for all ports of one, and other
 * edges ask for its only port.
 */
function buildGrpcService(namespace: string): Desired<Service> {
  const { grpc, edgeGrpc } = ROUTER_PORT_NAMES
  const annotations = { 'traefik.ingress.kubernetes.io/service.serversscheme': 'h2c' }
  const { metadata, selector } = servingOf(namespace, ROUTER_NAMES.grpcService)
  return buildService({ metadata: { ...metadata, annotations }, selector }, [
    grpcPort(grpc, PORTS.grpc),
    grpcPort(edgeGrpc, EDGE_PORTS.edgeGrpc),
  ])
}

function buildHttpService(namespace: string): Desired<Service> {
  const { http, edgeHttp } = ROUTER_PORT_NAMES
  return buildService(servingOf(namespace, ROUTER_NAMES.httpService), [
    servicePort(http, PORTS.http),
    servicePort(edgeHttp, EDGE_PORTS.edgeHttp),
  ])
}
