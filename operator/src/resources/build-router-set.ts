import {
  DEPLOYMENT,
  type Desired,
  NETWORK_POLICY,
  type NetworkPolicy,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  POD_DISRUPTION_BUDGET,
  type PodDisruptionBudget,
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
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
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

/** All of a namespace's router, in the order in which it is made: what pods need comes before them. Pure. */
export function buildRouterSet(
  parts: RouterParts,
  exposed: readonly ExposedEnsemble[],
): readonly DesiredChild[] {
  const { namespace } = parts
  const hasBudget = replicasOf(parts) > 1
  return [
    desiredChild(SERVICE_ACCOUNT, buildServiceAccount(namespace)),
    desiredChild(ROLE, buildRole(namespace)),
    desiredChild(ROLE_BINDING, buildRoleBinding(namespace)),
    desiredChild(SECRET, buildEdgeSecret(namespace, exposed)),
    ...(parts.defaults.network.isEnabled
      ? [desiredChild(NETWORK_POLICY, buildNetworkPolicy(parts))]
      : []),
    desiredChild(SERVICE, buildGrpcService(namespace)),
    desiredChild(SERVICE, buildHttpService(namespace)),
    // One pod alone could never be moved from its node.
    ...(hasBudget ? [desiredChild(POD_DISRUPTION_BUDGET, buildBudget(namespace))] : []),
    desiredChild(DEPLOYMENT, buildRouterDeployment(parts)),
  ]
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
 * Who may connect: pods of the namespace, and of those that the Router names, to the listeners with the whole API; everybody to the
 * listeners for requests from outside; the operator and those who scrape to the metrics. There is no rule for what
 * a router connects to: the address of the API server is not known in general.
 */
function buildNetworkPolicy({ namespace, defaults, spec }: RouterParts): Desired<NetworkPolicy> {
  const { operatorNamespace, operatorLabels, scrapers } = defaults.network
  const { clientNamespaces = [] } = spec
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
