import type { Condition, IntOrString, KubeObject, LabelSelector } from '../object.ts'
import type { Resource } from '../resource.ts'

export interface NetworkPolicy extends KubeObject {
  readonly spec: {
    readonly podSelector: LabelSelector
    readonly policyTypes?: readonly ('Ingress' | 'Egress')[]
    readonly ingress?: readonly {
      readonly from?: readonly NetworkPolicyPeer[]
      readonly ports?: readonly NetworkPolicyPort[]
    }[]
    readonly egress?: readonly {
      readonly to?: readonly NetworkPolicyPeer[]
      readonly ports?: readonly NetworkPolicyPort[]
    }[]
  }
}

export interface NetworkPolicyPeer {
  readonly podSelector?: LabelSelector
  readonly namespaceSelector?: LabelSelector
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] }
}

export interface NetworkPolicyPort {
  readonly port?: IntOrString
  readonly endPort?: number
  readonly protocol?: 'TCP' | 'UDP'
}

export const NETWORK_POLICY: Resource<NetworkPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  namespaced: true,
}

export interface Ingress extends KubeObject {
  readonly spec: {
    readonly ingressClassName?: string
    readonly tls?: readonly { readonly hosts?: readonly string[]; readonly secretName?: string }[]
    readonly rules?: readonly {
      readonly host?: string
      readonly http?: {
        readonly paths: readonly {
          readonly path?: string
          readonly pathType: 'Exact' | 'Prefix' | 'ImplementationSpecific'
          readonly backend: IngressBackend
        }[]
      }
    }[]
    readonly defaultBackend?: IngressBackend
  }
  readonly status?: {
    readonly loadBalancer?: {
      readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[]
    }
  }
}

export interface IngressBackend {
  readonly service?: {
    readonly name: string
    readonly port: { readonly name?: string; readonly number?: number }
  }
}

export const INGRESS: Resource<Ingress> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingresses',
  kind: 'Ingress',
  namespaced: true,
}

/** Gateway API; a cluster may lack it. */
export interface HttpRoute extends KubeObject {
  readonly spec: {
    readonly parentRefs?: readonly ParentReference[]
    readonly hostnames?: readonly string[]
    readonly rules?: readonly HttpRouteRule[]
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

export interface HttpRouteRule {
  readonly matches?: readonly {
    readonly path?: {
      readonly type?: 'Exact' | 'PathPrefix' | 'RegularExpression'
      readonly value?: string
    }
    readonly headers?: readonly {
      readonly type?: 'Exact' | 'RegularExpression'
      readonly name: string
      readonly value: string
    }[]
    readonly method?: string
  }[]
  readonly backendRefs?: readonly {
    readonly name: string
    readonly port?: number
    readonly weight?: number
  }[]
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string }
}

export const HTTP_ROUTE: Resource<HttpRoute> = {
  group: 'gateway.networking.k8s.io',
  version: 'v1',
  plural: 'httproutes',
  kind: 'HTTPRoute',
  namespaced: true,
}
