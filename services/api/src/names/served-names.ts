/** A Model or an Ensemble that claims a served name. */
export interface Claimant {
  readonly kind: string
  /**
   * Name and time of the resource. `creationTimestamp` is as the API server wrote it, and absent if the resource was never
   * applied.
   */
  readonly metadata: {
    readonly name: string
    readonly creationTimestamp?: string | null | undefined
  }
}

/**
 * Compares two resources that claim the same served name, for a sort: the first one gets the name. The older resource comes
 * first. Timestamps have whole seconds, so resources of the same second are in the order of kind and name.
 */
export function compareClaims(one: Claimant, other: Claimant): number {
  const [a, b] = [rankOf(one), rankOf(other)]
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Returns the text by which claimants are ordered: RFC 3339 in UTC sorts as text. */
function rankOf({ kind, metadata }: Claimant): string {
  return `${metadata.creationTimestamp ?? ''} ${kind} ${metadata.name}`
}

/** Builds the text of the problem that another resource already has the served name. One line, for the field `modelName`. */
export function nameConflict(servedName: string, { kind, metadata }: Claimant): string {
  return `'${servedName}' is the served name of ${kind} '${metadata.name}'; want another`
}

/** A Model or an Ensemble that a step may have meant. */
export interface NamedResource {
  readonly kind: string
  /** Name by which clients and steps call the resource. */
  readonly servedName: string
}

/**
 * Builds a hint for a name that is the `metadata.name` of a resource with another served name.
 *
 * @returns undefined if there is no such resource.
 */
export function hintOfResource(name: string, meant: NamedResource | undefined): string | undefined {
  if (meant === undefined || meant.servedName === name) return undefined
  return `; ${meant.kind} '${name}' is served as '${meant.servedName}'`
}

/**
 * Builds the text that no Model or Ensemble has a served name yet, with a hint.
 *
 * @param meant - the resource whose `metadata.name` is `name`, if there is one.
 */
export function notServedText(name: string, meant: NamedResource | undefined): string {
  const hint = hintOfResource(name, meant) ?? '; want one of that served name'
  return `no Model or Ensemble serves '${name}' yet${hint}`
}
