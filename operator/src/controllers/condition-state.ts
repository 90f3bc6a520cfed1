import type { Condition } from '@tutti/kube'

/** The content of a condition, without its type, generation and time. */
export interface ConditionState {
  readonly status: Condition['status']
  /** One CamelCase word. */
  readonly reason: string
  /** One line. */
  readonly message: string
}

export function isTrue(reason: string, message: string): ConditionState {
  return { status: 'True', reason, message }
}

export function isFalse(reason: string, message: string): ConditionState {
  return { status: 'False', reason, message }
}

export function isUnknown(reason: string, message: string): ConditionState {
  return { status: 'Unknown', reason, message }
}
