import type { RbacV1Subject, V1PolicyRule, V1RoleRef } from '@kubernetes/client-node'
import type { KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'
import type { Wire } from './wire.ts'

export interface Role extends KubeObject {
  readonly rules?: readonly Wire<V1PolicyRule>[]
}

export const ROLE = defineResource<Role>('rbac.authorization.k8s.io/v1', 'roles', 'Role')

export interface RoleBinding extends KubeObject {
  /** Reference to the role; the server refuses changes of it. */
  readonly roleRef: Wire<V1RoleRef>
  readonly subjects?: readonly Wire<RbacV1Subject>[]
}

export const ROLE_BINDING = defineResource<RoleBinding>(
  'rbac.authorization.k8s.io/v1',
  'rolebindings',
  'RoleBinding',
)
