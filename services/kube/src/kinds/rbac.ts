import type { KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'

export interface PolicyRule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly verbs: readonly string[]
}

export interface RoleRef {
  readonly apiGroup: 'rbac.authorization.k8s.io'
  readonly kind: 'Role' | 'ClusterRole'
  readonly name: string
}

export interface Subject {
  readonly kind: 'ServiceAccount' | 'User' | 'Group'
  readonly name: string
  readonly namespace?: string
  readonly apiGroup?: string
}

export interface Role extends KubeObject {
  readonly rules?: readonly PolicyRule[]
}

export const ROLE = defineResource<Role>('rbac.authorization.k8s.io/v1', 'roles', 'Role')

export interface RoleBinding extends KubeObject {
  /** Can never be changed. */
  readonly roleRef: RoleRef
  readonly subjects?: readonly Subject[]
}

export const ROLE_BINDING = defineResource<RoleBinding>(
  'rbac.authorization.k8s.io/v1',
  'rolebindings',
  'RoleBinding',
)
