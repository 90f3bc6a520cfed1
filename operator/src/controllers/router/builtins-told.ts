import type { StepStatus } from '@tutti/api'
import type { RouterObject } from '../../api/kinds.ts'
import { findCondition } from '../../runtime/conditions.ts'

/** The state of the pods with built-ins, as the status of a step tells it. */
export type ToldBuiltins = Pick<StepStatus, 'ready' | 'replicas' | 'reason' | 'message'>

/**
 * Reads from the status of a Router whether pods with built-ins can answer, and why not. While pods are replaced, not all of them
 * are ready, and those that are still answer. Pure.
 */
export function builtinsOf(router: RouterObject | undefined): ToldBuiltins {
  const { builtins, conditions } = router?.status ?? {}
  const replicas = builtins?.readyReplicas
  if (replicas !== undefined && replicas > 0) return { ready: true, replicas }
  const told = findCondition(conditions, 'BuiltinsReady')
  const isTold = builtins !== undefined && told?.status === 'False'
  return {
    ready: false,
    ...(replicas !== undefined && { replicas }),
    reason: isTold ? told.reason : 'Pending',
    message: isTold ? told.message : 'the pods with built-ins are not there yet',
  }
}

/** True if two states of a Router differ in what they tell of built-ins. */
export function hasOtherBuiltins(now: RouterObject, before: RouterObject): boolean {
  return JSON.stringify(builtinsOf(now)) !== JSON.stringify(builtinsOf(before))
}
