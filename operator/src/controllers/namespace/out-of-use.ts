import {
  DEPLOYMENT,
  type KubeObject,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  type Resource,
  ROLE,
  ROLE_BINDING,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Stored,
} from '@tutti/kube'

/** A member of a router set as it is. */
export interface FoundMember {
  readonly resource: Resource
  readonly object: Stored<KubeObject>
}

/**
 * Which kinds use one of a kind, beside its own: what comes in an object's place is of its kind. The pods of an earlier Deployment
 * go on with all that they were given, are reached through the Services of that time, and keep their budget.
 */
const USERS: readonly (readonly [Resource, readonly Resource[]])[] = [
  [SERVICE_ACCOUNT, [ROLE_BINDING, DEPLOYMENT]],
  [ROLE, [ROLE_BINDING, DEPLOYMENT]],
  [ROLE_BINDING, [DEPLOYMENT]],
  [SECRET, [DEPLOYMENT]],
  [NETWORK_POLICY, []],
  [SERVICE, [DEPLOYMENT]],
  [POD_DISRUPTION_BUDGET, [DEPLOYMENT]],
  [DEPLOYMENT, []],
]

/**
 * Of what is not wanted any more, what nothing uses, although some of what is wanted could not be made: no object whose own
 * successor may be missing, and none that a member which stays as it was may need. A kind that is not known stays. Pure.
 *
 * @param missing - kinds of which something wanted could not be made or changed.
 */
export function outOfUse(
  unwanted: readonly FoundMember[],
  missing: readonly Resource[],
): readonly FoundMember[] {
  if (missing.length === 0) return unwanted
  const kinds = new Set(missing.map(({ kind }) => kind))
  return unwanted.filter(({ resource: { kind } }) => {
    const [, users] = USERS.find(([resource]) => resource.kind === kind) ?? []
    return users !== undefined && !kinds.has(kind) && users.every((user) => !kinds.has(user.kind))
  })
}
