import { assert } from '@tutti/errors'

/** The names that the first token of all subjects may have: such a name is its own token, and NATS uses none of them itself. */
export const PREFIX_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/

const NAMESPACE_PATTERN = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * The subjects of a namespace, its inboxes included (`<prefix>.<namespace>.inbox.*`): what its credential permits, and all of it.
 * Neither name has a dot or a wildcard, so no namespace's subjects are within another's, also when one name begins with the other.
 *
 * @param names - prefix: as PREFIX_PATTERN; namespace: as Kubernetes names namespaces.
 */
export function tenantSubjects(names: {
  readonly prefix: string
  readonly namespace: string
}): string {
  const { prefix, namespace } = names
  assert(PREFIX_PATTERN.test(prefix), `subject prefix ${JSON.stringify(prefix)}`)
  assert(NAMESPACE_PATTERN.test(namespace), `namespace ${JSON.stringify(namespace)}`)
  return `${prefix}.${namespace}.>`
}
