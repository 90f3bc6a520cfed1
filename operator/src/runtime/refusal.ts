import { isForbidden, isNamespaceTerminating, isTerminal, type KubeError } from '@tutti/kube'

/**
 * True for an error that lasts until a person acts: the server rejects the object itself, or a quota, a policy or the operator's
 * rights forbid it.
 */
export function isRefusal(error: unknown): error is KubeError {
  return isTerminal(error) || (isForbidden(error) && !isNamespaceTerminating(error))
}
