import type { Condition } from '@tutti/kube'

/** A condition as a controller finds it. */
interface ConditionInput {
  readonly type: string
  readonly status: Condition['status']
  /** One CamelCase word. */
  readonly reason: string
  /** Cut if it is longer than the API server takes. */
  readonly message: string
  /** The generation that was looked at. */
  readonly observedGeneration: number
}

/** metav1.Condition's bound, in characters. */
const LONGEST_MESSAGE = 32_768

/** A condition as a status that was read has it. */
type Known = Omit<Condition, 'observedGeneration'> & {
  readonly observedGeneration?: number | undefined
}

/**
 * Builds the conditions of a status: one for each of `types`, in that order. It leaves out conditions of other managers, because
 * a manager that applies a condition owns it and may overwrite newer values.
 */
export function toConditions<T extends string>(
  types: readonly T[],
  o: {
    readonly states: Readonly<Record<T, Pick<ConditionInput, 'status' | 'reason' | 'message'>>>
    /** Conditions before this status. Their lastTransitionTime stays where the status does. */
    readonly before: readonly Known[] | undefined
    readonly observedGeneration: number
    /** Time of the new status, RFC 3339 in whole seconds. */
    readonly at: string
  },
): Condition[] {
  const { states, before, observedGeneration, at } = o
  return types.map((type) =>
    toNext(findCondition(before, type), { ...states[type], type, observedGeneration }, at),
  )
}

/** Returns the condition of a type, if there is one. */
export function findCondition<C extends { readonly type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type)
}

/** Formats a time as metav1.Time does: RFC 3339 in whole seconds. */
export function toTime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`
}

function toNext(old: Known | undefined, input: ConditionInput, at: string): Condition {
  const { type, status, reason, message, observedGeneration } = input
  const lastTransitionTime = old?.status === status ? old.lastTransitionTime : at
  return {
    type,
    status,
    observedGeneration,
    lastTransitionTime,
    reason,
    message: cutText(message, LONGEST_MESSAGE),
  }
}

/** Cuts a text to at most `longest` UTF-16 units. A cut text ends in `…` and never in half a character. */
export function cutText(text: string, longest: number): string {
  if (text.length <= longest) return text
  return `${text.slice(0, longest - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}
