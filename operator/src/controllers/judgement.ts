import type { Condition } from '@tutti/kube'

/** What a condition says, but for its type, generation and time. */
export interface Judgement {
  readonly status: Condition['status']
  /** One CamelCase word. */
  readonly reason: string
  /** One line. */
  readonly message: string
}

export function isTrue(reason: string, message: string): Judgement {
  return { status: 'True', reason, message }
}

export function isFalse(reason: string, message: string): Judgement {
  return { status: 'False', reason, message }
}

export function isUnknown(reason: string, message: string): Judgement {
  return { status: 'Unknown', reason, message }
}
