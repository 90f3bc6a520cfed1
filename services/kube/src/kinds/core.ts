import type { V1ServicePort, V1ServiceSpec } from '@kubernetes/client-node'
import type { KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'
import type { Wire } from './wire.ts'

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
  readonly spec: Wire<V1ServiceSpec>
}

export type ServicePort = Wire<V1ServicePort>

export const SERVICE = defineResource<Service>('v1', 'services', 'Service')
