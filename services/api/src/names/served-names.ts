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

/** A Model or an Ensemble, as one that a step may have meant. */
export interface NamedResource {
  readonly kind: string
  /** The name by which clients, and steps, call it. */
  readonly servedName: string
}

/** A hint for a name that is the `metadata.name` of a resource with another served name; undefined if it is not. */
export function hintOfResource(name: string, meant: NamedResource | undefined): string | undefined {
  if (meant === undefined || meant.servedName === name) return undefined
  return `; ${meant.kind} '${name}' is served as '${meant.servedName}'`
}

/**
 * Says that a served name is not taken yet.
 *
 * @param meant - the resource of that `metadata.name`.
 */
export function notServedText(name: string, meant: NamedResource | undefined): string {
  const hint = hintOfResource(name, meant) ?? '; want one of that served name'
  return `no Model or Ensemble serves '${name}' yet${hint}`
}
