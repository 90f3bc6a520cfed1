import type { KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'

export interface Role extends KubeObject {
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[]
    readonly resources?: readonly string[]
    readonly verbs: readonly string[]
  }[]
}

export const ROLE = defineResource<Role>('rbac.authorization.k8s.io/v1', 'roles', 'Role')

export interface RoleBinding extends KubeObject {
  /** Can never be changed. */
  readonly roleRef: {
    readonly apiGroup: 'rbac.authorization.k8s.io'
    readonly kind: 'Role'
    readonly name: string
  }
  readonly subjects?: readonly {
    readonly kind: 'ServiceAccount'
    readonly name: string
    readonly namespace?: string
  }[]
}

export const ROLE_BINDING = defineResource<RoleBinding>(
  'rbac.authorization.k8s.io/v1',
  'rolebindings',
  'RoleBinding',
)
