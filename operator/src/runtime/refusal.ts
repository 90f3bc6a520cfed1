import { isForbidden, isNamespaceTerminating, isTerminal, type KubeError } from '@tutti/kube'

/**
 * True for what stays refused until a person changes or allows something: the object itself is wrong, or a quota, a policy or the
 * operator's rights stand against it.
 */
export function isRefusal(error: unknown): error is KubeError {
  return isTerminal(error) || (isForbidden(error) && !isNamespaceTerminating(error))
}

/** True if a quota of the namespace stands against it: there may be room once something else has gone. */
export function isQuotaExceeded(error: unknown): error is KubeError {
  // The API server gives neither a reason nor a cause of its own for it.
  return isForbidden(error) && /\bexceeded quota: /.test(error.message)
}
