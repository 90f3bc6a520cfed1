/** As tritonserver prints it between the two. */
const SEPARATOR = '::'

/** The parts of a qualified name. */
export interface QualifiedName {
  /** A model repository, by its path or address. */
  readonly namespace: string
  readonly name: string
}

/**
 * Makes the name of a model where names are unique only within a repository.
 *
 * @param namespace - holds a `/`, which no model's name does, and no `::`.
 */
export function qualifyName(namespace: string, name: string): string {
  return `${namespace}${SEPARATOR}${name}`
}

/** @returns undefined for a name that is not qualified. */
export function splitName(name: string): QualifiedName | undefined {
  const end = name.indexOf(SEPARATOR)
  const namespace = name.slice(0, Math.max(0, end))
  if (!namespace.includes('/')) return undefined
  return { namespace, name: name.slice(end + SEPARATOR.length) }
}

/** Finds the name of the model in its own repository, which clients use. */
export function plainName(name: string): string {
  return splitName(name)?.name ?? name
}

/**
 * Finds what a model means by the name of another one: that of its own repository, else the only one that there is.
 *
 * @param qualified - all that are called `name`.
 * @returns `name` as it is, which no model is called, if there is none or several.
 */
export function resolveName(qualified: readonly string[], namespace: string, name: string): string {
  const own = qualifyName(namespace, name)
  if (qualified.includes(own)) return own
  const [only, ...others] = qualified
  return only === undefined || others.length > 0 ? name : only
}
