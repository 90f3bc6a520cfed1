import type {
  V1IngressSpec,
  V1IngressStatus,
  V1NetworkPolicyPeer,
  V1NetworkPolicyPort,
  V1NetworkPolicySpec,
} from '@kubernetes/client-node'
import type { Condition, KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'
import type { Wire } from './wire.ts'

export interface NetworkPolicy extends KubeObject {
  readonly spec: Wire<V1NetworkPolicySpec>
}

export type NetworkPolicyPeer = Wire<V1NetworkPolicyPeer>
export type NetworkPolicyPort = Wire<V1NetworkPolicyPort>

export const NETWORK_POLICY = defineResource<NetworkPolicy>(
  'networking.k8s.io/v1',
  'networkpolicies',
  'NetworkPolicy',
)

export interface Ingress extends KubeObject {
  readonly spec: Wire<V1IngressSpec>
  readonly status?: Wire<V1IngressStatus>
}

/** A class that an ingress controller serves. */
export const INGRESS_CLASS = defineResource<KubeObject>(
  'networking.k8s.io/v1',
  'ingressclasses',
  'IngressClass',
)

export const INGRESS = defineResource<Ingress>('networking.k8s.io/v1', 'ingresses', 'Ingress')

/** Gateway API; a cluster may lack it. */
export interface HttpRoute extends KubeObject {
  readonly spec: {
    readonly parentRefs?: readonly ParentReference[]
    readonly hostnames?: readonly string[]
    readonly rules?: readonly {
      readonly matches?: readonly {
        readonly path?: { readonly type?: 'PathPrefix'; readonly value?: string }
      }[]
      readonly backendRefs?: readonly { readonly name: string; readonly port?: number }[]
      readonly timeouts?: { readonly request?: string }
    }[]
  }
  readonly status?: {
    readonly parents?: readonly {
      readonly parentRef: ParentReference
      readonly controllerName: string
      readonly conditions?: readonly Condition[]
    }[]
  }
}

export interface ParentReference {
  readonly group?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
  readonly sectionName?: string
  readonly port?: number
}

export const HTTP_ROUTE = defineResource<HttpRoute>(
  'gateway.networking.k8s.io/v1',
  'httproutes',
  'HTTPRoute',
)
