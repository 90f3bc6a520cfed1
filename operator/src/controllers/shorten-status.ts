import type { Condition } from '@tutti/ensemble'
import { cutText } from '../runtime/conditions.ts'

/** Characters; what is said there in words is rarely longer. */
const LONGEST_MESSAGE = 1024
const LEFT_OUT =
  'status.signature is left out and messages are cut: with all of it the resource would be larger than etcd takes (1.5 MiB), want a smaller spec'

/**
 * A status without what may be large: the signature, which a router tells too, and long messages. Its condition `Degraded` has the
 * words. No condition gets another status by it: those that are judged the next time would get another time otherwise.
 */
export function shortenStatus<S extends { readonly conditions?: Condition[] | undefined }>(
  status: S,
): S {
  const conditions = (status.conditions ?? []).map((condition) => {
    const message = cutText(condition.message, LONGEST_MESSAGE)
    const isTold = condition.type === 'Degraded'
    return { ...condition, message: isTold ? `${message}; ${LEFT_OUT}` : message }
  })
  const shortened = { ...status, conditions }
  if ('signature' in shortened) delete shortened.signature
  return shortened
}
