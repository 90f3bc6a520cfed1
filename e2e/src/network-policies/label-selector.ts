export type Labels = Readonly<Record<string, string>>

export interface LabelSelector {
  readonly matchLabels?: Labels
  readonly matchExpressions?: readonly LabelRequirement[]
}

export interface LabelRequirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}

/** Whether the selector takes what has these labels: all of its demands hold; one without demands takes everything. */
export function selects(selector: LabelSelector, labels: Labels): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector
  return (
    Object.entries(matchLabels).every(([key, value]) => valueOf(labels, key) === value) &&
    matchExpressions.every((requirement) => holds(requirement, labels))
  )
}

function valueOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined
}

/** A label that is not there is in no set, so NotIn holds for it. */
function holds({ key, operator, values = [] }: LabelRequirement, labels: Labels): boolean {
  const value = valueOf(labels, key)
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      throw new Error(`operator: got ${operator}, want In, NotIn, Exists or DoesNotExist`)
  }
}
