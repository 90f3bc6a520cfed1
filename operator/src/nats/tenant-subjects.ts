import { assert } from '@tutti/errors'

/** The form of the first token of all subjects. A name of this form is one token, and NATS itself uses no such name. */
export const PREFIX_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/

const NAMESPACE_PATTERN = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * Returns the wildcard for all subjects of a namespace, its inboxes included (`<prefix>.<namespace>.inbox.*`). A credential
 * permits exactly these. Neither name has a dot or a wildcard, so the subjects of two namespaces never overlap.
 *
 * @param names - prefix: as PREFIX_PATTERN; namespace: as Kubernetes names namespaces. Others fail an assertion.
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
