import type { KubeObject } from '../object.ts'
import type { Resource } from '../resource.ts'

export interface PolicyRule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
  readonly nonResourceURLs?: readonly string[]
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

export const ROLE: Resource<Role> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'roles',
  kind: 'Role',
  namespaced: true,
}

export interface RoleBinding extends KubeObject {
  /** Can never be changed. */
  readonly roleRef: RoleRef
  readonly subjects?: readonly Subject[]
}

export const ROLE_BINDING: Resource<RoleBinding> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'rolebindings',
  kind: 'RoleBinding',
  namespaced: true,
}
