import type { IntOrString, KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'

export interface Secret extends KubeObject {
  readonly type?: string
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>
}

export const SECRET = defineResource<Secret>('v1', 'secrets', 'Secret')

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}

export const CONFIG_MAP = defineResource<ConfigMap>('v1', 'configmaps', 'ConfigMap')

export interface ServiceAccount extends KubeObject {
  readonly automountServiceAccountToken?: boolean
}

export const SERVICE_ACCOUNT = defineResource<ServiceAccount>(
  'v1',
  'serviceaccounts',
  'ServiceAccount',
)

export interface Service extends KubeObject {
  readonly spec: {
    /** `None` for a headless one. */
    readonly clusterIP?: string
    readonly selector?: Readonly<Record<string, string>>
    readonly ports?: readonly ServicePort[]
  }
}

export interface ServicePort {
  readonly name?: string
  readonly port: number
  readonly targetPort?: IntOrString
  readonly protocol?: 'TCP' | 'UDP'
  readonly appProtocol?: string
}

export const SERVICE = defineResource<Service>('v1', 'services', 'Service')
