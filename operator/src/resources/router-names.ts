import { COMPONENT } from '@tutti/api'
import { MANAGED_BY, toSelector } from '../runtime/children.ts'

/** Names of the objects of a router. */
export const ROUTER_NAMES = {
  /** Name of the ServiceAccount, Role, RoleBinding, Deployment, PodDisruptionBudget and NetworkPolicy. */
  router: 'tutti-router',
  grpcService: 'tutti-router-grpc',
  httpService: 'tutti-router-http',
  /** Name of the Secret with the exposed Ensembles and their hosts. */
  edge: 'tutti-router-edge',
} as const

/** The router's ports for requests from outside the cluster. For its other ports see PORTS. */
export const EDGE_PORTS = { edgeHttp: 9000, edgeGrpc: 9001 } as const

/** Names of the Services' ports. */
export const ROUTER_PORT_NAMES = {
  grpc: 'grpc',
  http: 'http',
  metrics: 'metrics',
  edgeGrpc: 'edge-grpc',
  edgeHttp: 'edge-http',
} as const

type Labels = Readonly<Record<string, string>>

/** The labels that select the pods of a router. They must never change, because a Deployment's selector cannot. */
export const ROUTER_SELECTOR: Labels = {
  [COMPONENT]: 'router',
  'app.kubernetes.io/instance': ROUTER_NAMES.router,
}

/** The labels by which a Router adopts objects of an earlier Router that was deleted. */
export const ROUTER_IDENTITY: Labels = { ...MANAGED_BY, ...ROUTER_SELECTOR }

/** Labels of each object of a router. */
export const ROUTER_LABELS: Labels = {
  ...ROUTER_IDENTITY,
  'app.kubernetes.io/name': 'tutti-router',
}

/** The label selector for the objects of all routers. */
export const ROUTER_LABEL_SELECTOR = toSelector({ ...MANAGED_BY, [COMPONENT]: 'router' })
