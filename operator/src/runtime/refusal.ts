import { isForbidden, isNamespaceTerminating, isTerminal, type KubeError } from '@tutti/kube'

/**
 * True for what stays refused until a person changes or allows something: the object itself is wrong, or a quota, a policy or the
 * operator's rights stand against it.
 */
export function isRefusal(error: unknown): error is KubeError {
  return isTerminal(error) || (isForbidden(error) && !isNamespaceTerminating(error))
}
