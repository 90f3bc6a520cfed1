import { ENSEMBLE_LABEL, type EnsembleExpose } from '@tutti/api'
import { type Desired, HTTP_ROUTE, type HttpRoute, INGRESS, type Ingress } from '@tutti/kube'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
import { toPlain } from './plain.ts'
import { EDGE_PORTS, ROUTER_NAMES, ROUTER_PORT_NAMES } from './router-names.ts'

/** An Ensemble that is exposed outside the cluster. */
export interface EnsembleExposure {
  /** Name of the Ensemble, its metadata.name. */
  readonly name: string
  readonly namespace: string
  readonly expose: EnsembleExpose
}

/** Paths of gRPC: a client cannot choose them. */
const GRPC_PATHS = ['/inference.GRPCInferenceService', '/grpc.health.v1.Health'] as const

/** How ingress-nginx is told; all others that we know go by the Service. */
const NGINX_GRPC = { 'nginx.ingress.kubernetes.io/backend-protocol': 'GRPC' }

/** Builds the two Ingresses or the HTTPRoute that lead requests from outside the cluster to the router. Pure. */
export function buildEnsembleRoutes(exposure: EnsembleExposure): readonly DesiredChild[] {
  const { ingress, gateway } = exposure.expose
  if (ingress !== undefined) {
    return [
      desiredChild(INGRESS, buildIngress(exposure, ingress, 'grpc')),
      desiredChild(INGRESS, buildIngress(exposure, ingress, 'http')),
    ]
  }
  return gateway === undefined ? [] : [desiredChild(HTTP_ROUTE, buildHttpRoute(exposure, gateway))]
}

/** Labels of the children of an Ensemble. */
function ensembleLabels(name: string): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/name': 'tutti-ensemble',
    'app.kubernetes.io/instance': name,
    [ENSEMBLE_LABEL]: name,
  }
}

/**
 * Builds an Ingress, one for gRPC and one for REST: some controllers take the protocol from an annotation of the whole Ingress.
 */
function buildIngress(
  { name, namespace }: EnsembleExposure,
  { className, hosts, tls, annotations }: NonNullable<EnsembleExpose['ingress']>,
  protocol: 'grpc' | 'http',
): Desired<Ingress> {
  const isGrpc = protocol === 'grpc'
  const service = isGrpc
    ? { name: ROUTER_NAMES.grpcService, port: { name: ROUTER_PORT_NAMES.edgeGrpc } }
    : { name: ROUTER_NAMES.httpService, port: { name: ROUTER_PORT_NAMES.edgeHttp } }
  const paths = (isGrpc ? GRPC_PATHS : ['/']).map((path) => ({
    path,
    pathType: 'Prefix' as const,
    backend: { service },
  }))
  return {
    metadata: {
      name: `${name}-${protocol}`,
      namespace,
      labels: ensembleLabels(name),
      annotations: { ...(isGrpc && NGINX_GRPC), ...annotations },
    },
    spec: {
      ...(className !== undefined && { ingressClassName: className }),
      ...(tls !== undefined && { tls: toPlain(tls) }),
      rules: hosts.map((host) => ({ host, http: { paths } })),
    },
  }
}

/**
 * Builds an HTTPRoute of KServe's shape: gRPC by its path, REST for the rest. It sets no timeout, as streams have none; the
 * router keeps the timeout of each request.
 */
function buildHttpRoute(
  { name, namespace }: EnsembleExposure,
  { parentRef, hosts }: NonNullable<EnsembleExpose['gateway']>,
): Desired<HttpRoute> {
  const timeouts = { request: '0s' }
  return {
    metadata: { name, namespace, labels: ensembleLabels(name) },
    spec: {
      parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', ...toPlain(parentRef) }],
      hostnames: [...hosts],
      rules: [
        {
          matches: GRPC_PATHS.map((value) => ({ path: { type: 'PathPrefix', value } })),
          backendRefs: [{ name: ROUTER_NAMES.grpcService, port: EDGE_PORTS.edgeGrpc }],
          timeouts,
        },
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          backendRefs: [{ name: ROUTER_NAMES.httpService, port: EDGE_PORTS.edgeHttp }],
          timeouts,
        },
      ],
    },
  }
}

/** Returns the addresses at which clients call a model: those of the first exposed host, or of the router's Services. */
export function urlsOf(
  namespace: string,
  expose: EnsembleExpose | undefined,
): { readonly url: string; readonly grpcUrl: string } {
  const host = (expose?.ingress ?? expose?.gateway)?.hosts[0]
  if (host === undefined) {
    const inside = (service: string) => `${service}.${namespace}.svc`
    return {
      url: `http://${inside(ROUTER_NAMES.httpService)}:8000`,
      grpcUrl: `${inside(ROUTER_NAMES.grpcService)}:8001`,
    }
  }
  const tls = expose?.ingress?.tls?.some(({ hosts }) => hosts.includes(host)) === true
  return { url: `${tls ? 'https' : 'http'}://${host}`, grpcUrl: `${host}:${tls ? 443 : 80}` }
}
