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
 * The conditions of a status, one for each of `types` and in their order. Those of other managers are left out: to send them would
 * be to own them, and to undo what is written meanwhile.
 */
export function toConditions<T extends string>(
  types: readonly T[],
  o: {
    readonly states: Readonly<Record<T, Pick<ConditionInput, 'status' | 'reason' | 'message'>>>
    /** As they were. */
    readonly before: readonly Known[] | undefined
    readonly observedGeneration: number
    /** RFC 3339, whole seconds. */
    readonly at: string
  },
): Condition[] {
  const { states, before, observedGeneration, at } = o
  return types.map((type) =>
    toNext(findCondition(before, type), { ...states[type], type, observedGeneration }, at),
  )
}

/** The condition of a type, if it is there. */
export function findCondition<C extends { readonly type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type)
}

/** RFC 3339 in whole seconds, the form of metav1.Time. */
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

/** The text, or its beginning: at most `longest` UTF-16 units, and no half of a character at the end. */
export function cutText(text: string, longest: number): string {
  if (text.length <= longest) return text
  return `${text.slice(0, longest - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}
