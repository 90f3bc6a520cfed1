import type { Condition, IntOrString, KubeObject, LabelSelector } from '../object.ts'
import { defineResource } from '../resource.ts'

export interface NetworkPolicy extends KubeObject {
  readonly spec: {
    readonly podSelector: LabelSelector
    readonly policyTypes?: readonly 'Ingress'[]
    readonly ingress?: readonly {
      readonly from?: readonly NetworkPolicyPeer[]
      readonly ports?: readonly NetworkPolicyPort[]
    }[]
  }
}

export interface NetworkPolicyPeer {
  readonly podSelector?: LabelSelector
  readonly namespaceSelector?: LabelSelector
}

export interface NetworkPolicyPort {
  readonly port?: IntOrString
  readonly protocol?: 'TCP' | 'UDP'
}

export const NETWORK_POLICY = defineResource<NetworkPolicy>(
  'networking.k8s.io/v1',
  'networkpolicies',
  'NetworkPolicy',
)

export interface Ingress extends KubeObject {
  readonly spec: {
    readonly ingressClassName?: string
    readonly tls?: readonly { readonly hosts?: readonly string[]; readonly secretName?: string }[]
    readonly rules?: readonly {
      readonly host?: string
      readonly http?: {
        readonly paths: readonly {
          readonly path?: string
          readonly pathType: 'Prefix'
          readonly backend: {
            readonly service: { readonly name: string; readonly port: { readonly name: string } }
          }
        }[]
      }
    }[]
  }
  readonly status?: {
    /** Where an ingress controller that has taken it up answers. */
    readonly loadBalancer?: { readonly ingress?: readonly object[] }
  }
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
