import type {
  Desired,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  ObjectMeta,
  PodDisruptionBudget,
  Service,
  ServicePort,
} from '@tutti/kube'
import { ROUTER_SELECTOR } from './router-names.ts'
import { type NetworkSettings, PORTS } from './step-settings.ts'

/** Metadata of a child of a Model or a Router, and the labels of its pods. */
export interface ServingMetadata {
  /** Metadata of the child. */
  readonly metadata: ObjectMeta
  /** Labels that select the pods. */
  readonly selector: Readonly<Record<string, string>>
}

/** Builds a port of a Service for HTTP, which leads to the container port of the same name. */
export function servicePort(name: string, port: number): ServicePort {
  return { name, port, targetPort: name, protocol: 'TCP', appProtocol: 'http' }
}

/** Builds a port of a Service for gRPC without TLS; otherwise like `servicePort`. */
export function grpcPort(name: string, port: number): ServicePort {
  return { ...servicePort(name, port), appProtocol: 'kubernetes.io/h2c' }
}

export function buildService(
  { metadata, selector }: ServingMetadata,
  ports: readonly ServicePort[],
): Desired<Service> {
  return { metadata, spec: { selector, ports } }
}

export function buildBudget(
  { metadata, selector: matchLabels }: ServingMetadata,
  bounds: Pick<PodDisruptionBudget['spec'], 'minAvailable' | 'maxUnavailable'>,
): Desired<PodDisruptionBudget> {
  // Pods that serve nothing would hold up a drain for ever.
  const unhealthyPodEvictionPolicy = 'AlwaysAllow'
  return { metadata, spec: { selector: { matchLabels }, ...bounds, unhealthyPodEvictionPolicy } }
}

/**
 * Builds the NetworkPolicy for connections to pods. Pods of the namespace and `clients` may connect to the HTTP and gRPC ports,
 * everyone to `openPorts`, and the namespace's routers to `routerPorts`. Pods of the namespace, the operator and scrapers may
 * read metrics. A service mesh takes the connections to all ports at its own, which whoever may reach a port may reach too. Connections
 * that pods open are not limited: models may call other services, and the API server's address is not known in general.
 */
export function buildNetworkPolicy(
  { metadata, selector: matchLabels }: ServingMetadata,
  o: {
    readonly network: NetworkSettings
    readonly clients?: readonly NetworkPolicyPeer[]
    readonly openPorts?: readonly number[]
    /** Ports that only the routers of the namespace may reach. */
    readonly routerPorts?: readonly number[]
  },
): Desired<NetworkPolicy> {
  const { network, clients = [], openPorts = [], routerPorts = [] } = o
  const routers = { podSelector: { matchLabels: ROUTER_SELECTOR } }
  const inNamespace = { podSelector: {} }
  const podSelector = { matchLabels: network.operatorLabels }
  const operator = { ...ofNamespace(network.operatorNamespace), podSelector }
  const readers = [inNamespace, operator, ...network.scrapers]
  const callers = openPorts.length > 0 ? {} : { from: [...readers, ...clients] }
  return {
    metadata,
    spec: {
      podSelector: { matchLabels },
      policyTypes: ['Ingress'],
      ingress: [
        { from: [inNamespace, ...clients], ports: [PORTS.http, PORTS.grpc].map(toTcp) },
        ...(openPorts.length > 0 ? [{ ports: openPorts.map(toTcp) }] : []),
        ...(routerPorts.length > 0 ? [{ from: [routers], ports: routerPorts.map(toTcp) }] : []),
        { from: readers, ports: [toTcp(PORTS.metrics)] },
        ...(network.meshPorts.length > 0
          ? [{ ...callers, ports: network.meshPorts.map(toTcp) }]
          : []),
      ],
    },
  }
}

/** Builds the peer for all pods of a namespace, or of all namespaces with `*`. */
export function ofNamespace(name: string): NetworkPolicyPeer {
  return {
    namespaceSelector: name === '*' ? {} : { matchLabels: { 'kubernetes.io/metadata.name': name } },
  }
}

function toTcp(port: number): NetworkPolicyPort {
  return { port, protocol: 'TCP' }
}
