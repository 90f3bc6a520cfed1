import type { IntOrString, KubeObject } from '../object.ts'
import type { Resource } from '../resource.ts'
import type { Quantities } from './pod.ts'

export interface Namespace extends KubeObject {
  readonly status?: { readonly phase?: 'Active' | 'Terminating' }
}

export const NAMESPACE: Resource<Namespace> = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
}

export interface Node extends KubeObject {
  readonly spec?: {
    readonly unschedulable?: boolean
    readonly taints?: readonly {
      readonly key: string
      readonly value?: string
      readonly effect: string
    }[]
  }
  readonly status?: {
    readonly capacity?: Quantities
    readonly allocatable?: Quantities
    readonly addresses?: readonly { readonly type: string; readonly address: string }[]
    readonly conditions?: readonly {
      readonly type: string
      readonly status: 'True' | 'False' | 'Unknown'
      readonly reason?: string
      readonly message?: string
      readonly lastHeartbeatTime?: string
      readonly lastTransitionTime?: string
    }[]
  }
}

export const NODE: Resource<Node> = {
  group: '',
  version: 'v1',
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
}

export interface Secret extends KubeObject {
  readonly type?: string
  readonly immutable?: boolean
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>
  /** Plain; the server only takes it, and gives it back in `data`. */
  readonly stringData?: Readonly<Record<string, string>>
}

export const SECRET: Resource<Secret> = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  namespaced: true,
}

export interface ConfigMap extends KubeObject {
  readonly immutable?: boolean
  readonly data?: Readonly<Record<string, string>>
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>>
}

export const CONFIG_MAP: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
}

export interface ServiceAccount extends KubeObject {
  readonly automountServiceAccountToken?: boolean
  readonly imagePullSecrets?: readonly { readonly name: string }[]
}

export const SERVICE_ACCOUNT: Resource<ServiceAccount> = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
}

export interface Service extends KubeObject {
  readonly spec: {
    readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
    /** `None` for a headless one. */
    readonly clusterIP?: string
    readonly selector?: Readonly<Record<string, string>>
    readonly ports?: readonly ServicePort[]
    readonly publishNotReadyAddresses?: boolean
    readonly internalTrafficPolicy?: 'Cluster' | 'Local'
  }
  readonly status?: {
    readonly loadBalancer?: {
      readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[]
    }
  }
}

export interface ServicePort {
  readonly name?: string
  readonly port: number
  readonly targetPort?: IntOrString
  readonly nodePort?: number
  readonly protocol?: 'TCP' | 'UDP'
  readonly appProtocol?: string
}

export const SERVICE: Resource<Service> = {
  group: '',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  namespaced: true,
}
