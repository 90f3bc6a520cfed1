import type { CasePlace } from './case-rig.ts'

/** Gives the user `reader` the rights of these RBAC rules in the namespace, and no others. */
export async function allowReader(
  { plain, namespace }: CasePlace,
  rules: readonly object[],
): Promise<void> {
  const group = 'rbac.authorization.k8s.io'
  const path = (plural: string) => `/apis/${group}/v1/namespaces/${namespace}/${plural}/reader`
  await plain.apply(path('roles'), {
    apiVersion: `${group}/v1`,
    kind: 'Role',
    metadata: { name: 'reader' },
    rules,
  })
  await plain.apply(path('rolebindings'), {
    apiVersion: `${group}/v1`,
    kind: 'RoleBinding',
    metadata: { name: 'reader' },
    roleRef: { apiGroup: group, kind: 'Role', name: 'reader' },
    subjects: [{ kind: 'User', apiGroup: group, name: 'reader' }],
  })
}
