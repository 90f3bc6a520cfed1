/** A Model or an Ensemble, as one that wants a served name. */
export interface Claimant {
  readonly kind: string
  /** `creationTimestamp` as the server wrote it; absent for what was never applied. */
  readonly metadata: {
    readonly name: string
    readonly creationTimestamp?: string | null | undefined
  }
}

/**
 * Orders those that want the same served name: the first has it. It is the oldest; timestamps have seconds, so of those applied
 * together, or not at all, the first by kind and name.
 */
export function compareClaims(one: Claimant, other: Claimant): number {
  const [a, b] = [rankOf(one), rankOf(other)]
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** RFC 3339 in UTC sorts as text. */
function rankOf({ kind, metadata }: Claimant): string {
  return `${metadata.creationTimestamp ?? ''} ${kind} ${metadata.name}`
}

/** Says that another has the served name: the problem of `modelName`, in one line. */
export function nameConflict(servedName: string, { kind, metadata }: Claimant): string {
  return `'${servedName}' is the served name of ${kind} '${metadata.name}'; want another`
}
