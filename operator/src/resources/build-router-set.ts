import {
  DEPLOYMENT,
  type Desired,
  type KubeObject,
  NETWORK_POLICY,
  type NetworkPolicy,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  POD_DISRUPTION_BUDGET,
  type PodDisruptionBudget,
  type Resource,
  ROLE,
  ROLE_BINDING,
  type Role,
  type RoleBinding,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Service,
  type ServiceAccount,
  type ServicePort,
} from '@tutti/kube'
import { buildRouterDeployment, type RouterParts, replicasOf } from './router-deployment.ts'
import { buildEdgeSecret, type ExposedEnsemble } from './router-edge.ts'
import {
  EDGE_PORTS,
  ROUTER_LABELS,
  ROUTER_NAMES,
  ROUTER_PORT_NAMES,
  ROUTER_SELECTOR,
} from './router-names.ts'
import { PORTS } from './step-settings.ts'

/** An object of a router set, as it is wanted. */
export interface RouterMember {
  readonly resource: Resource
  readonly object: Desired<KubeObject>
}

/** Every kind that a router set has. */
export const ROUTER_KINDS: readonly Resource[] = [
  SERVICE_ACCOUNT,
  ROLE,
  ROLE_BINDING,
  SECRET,
  NETWORK_POLICY,
  SERVICE,
  POD_DISRUPTION_BUDGET,
  DEPLOYMENT,
]

/** All of a namespace's router, in the order in which it is made: what pods need comes before them. Pure. */
export function buildRouterSet(
  parts: RouterParts,
  exposed: readonly ExposedEnsemble[],
): readonly RouterMember[] {
  const { namespace } = parts
  const hasBudget = replicasOf(parts) > 1
  return [
    member(SERVICE_ACCOUNT, buildServiceAccount(namespace)),
    member(ROLE, buildRole(namespace)),
    member(ROLE_BINDING, buildRoleBinding(namespace)),
    member(SECRET, buildEdgeSecret(namespace, exposed)),
    ...(parts.defaults.network.isEnabled
      ? [member(NETWORK_POLICY, buildNetworkPolicy(parts))]
      : []),
    member(SERVICE, buildGrpcService(namespace)),
    member(SERVICE, buildHttpService(namespace)),
    // One pod alone could never be moved from its node.
    ...(hasBudget ? [member(POD_DISRUPTION_BUDGET, buildBudget(namespace))] : []),
    member(DEPLOYMENT, buildRouterDeployment(parts)),
  ]
}

function member<T extends KubeObject>(
  resource: Resource<T>,
  object: NoInfer<Desired<T>>,
): RouterMember {
  return { resource, object }
}

function metadataOf(namespace: string, name: string = ROUTER_NAMES.router) {
  return { name, namespace, labels: ROUTER_LABELS }
}

function buildServiceAccount(namespace: string): Desired<ServiceAccount> {
  return { metadata: metadataOf(namespace), automountServiceAccountToken: false }
}

function buildRole(namespace: string): Desired<Role> {
  return {
    metadata: metadataOf(namespace),
    rules: [
      { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: ['get', 'list', 'watch'] },
    ],
  }
}

function buildRoleBinding(namespace: string): Desired<RoleBinding> {
  const { router: name } = ROUTER_NAMES
  return {
    metadata: metadataOf(namespace),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  }
}

/** gRPC has a Service of its own: Traefik's annotation counts for all ports of one, and other edges ask for its only port. */
function buildGrpcService(namespace: string): Desired<Service> {
  const h2c = { appProtocol: 'kubernetes.io/h2c' }
  const { grpc, edgeGrpc } = ROUTER_PORT_NAMES
  return {
    metadata: {
      ...metadataOf(namespace, ROUTER_NAMES.grpcService),
      annotations: { 'traefik.ingress.kubernetes.io/service.serversscheme': 'h2c' },
    },
    spec: {
      selector: ROUTER_SELECTOR,
      ports: [
        { ...toPort(grpc, PORTS.grpc), ...h2c },
        { ...toPort(edgeGrpc, EDGE_PORTS.edgeGrpc), ...h2c },
      ],
    },
  }
}

function buildHttpService(namespace: string): Desired<Service> {
  const { http, edgeHttp } = ROUTER_PORT_NAMES
  return {
    metadata: metadataOf(namespace, ROUTER_NAMES.httpService),
    spec: {
      selector: ROUTER_SELECTOR,
      ports: [toPort(http, PORTS.http), toPort(edgeHttp, EDGE_PORTS.edgeHttp)],
    },
  }
}

function toPort(name: string, port: number): ServicePort {
  return { name, port, targetPort: name, protocol: 'TCP' }
}

function buildBudget(namespace: string): Desired<PodDisruptionBudget> {
  return {
    metadata: metadataOf(namespace),
    spec: {
      selector: { matchLabels: ROUTER_SELECTOR },
      maxUnavailable: 1,
      // Pods that serve nothing would hold up a drain for ever.
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  }
}

function ofNamespace(name: string): NetworkPolicyPeer {
  return {
    namespaceSelector: name === '*' ? {} : { matchLabels: { 'kubernetes.io/metadata.name': name } },
  }
}

function tcp(port: number): NetworkPolicyPort {
  return { port, protocol: 'TCP' }
}

/**
 * Who may connect: pods of the namespace, and of those that its settings name, to the doors with the whole API; everybody to those
 * for requests from outside; the operator and those who scrape to the metrics. What a router connects to is not ruled: the
 * address of the API server is nowhere to be had in general.
 */
function buildNetworkPolicy({
  namespace,
  defaults,
  settings,
}: RouterParts): Desired<NetworkPolicy> {
  const { operatorNamespace, operatorLabels, scrapers } = defaults.network
  const { clientNamespaces = [] } = settings
  const inNamespace = { podSelector: {} }
  const operator = {
    ...ofNamespace(operatorNamespace),
    podSelector: { matchLabels: operatorLabels },
  }
  return {
    metadata: metadataOf(namespace),
    spec: {
      podSelector: { matchLabels: ROUTER_SELECTOR },
      policyTypes: ['Ingress'],
      ingress: [
        {
          from: [inNamespace, ...clientNamespaces.map(ofNamespace)],
          ports: [tcp(PORTS.http), tcp(PORTS.grpc)],
        },
        { ports: [tcp(EDGE_PORTS.edgeHttp), tcp(EDGE_PORTS.edgeGrpc)] },
        { from: [inNamespace, operator, ...scrapers], ports: [tcp(PORTS.metrics)] },
      ],
    },
  }
}
