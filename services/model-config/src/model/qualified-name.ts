import type { ModelConfig } from './model-config.ts'

/** Separator that tritonserver prints between namespace and name. */
const SEPARATOR = '::'

/** The parts of a qualified name, `NAMESPACE::NAME`. */
export interface QualifiedName {
  /** Path or address of a model repository. */
  readonly namespace: string
  readonly name: string
}

/**
 * Makes the qualified name of a model, for servers where names are unique only within a repository.
 *
 * @param namespace - contains a `/`, which no model name does, and no `::`.
 */
export function qualifyName(namespace: string, name: string): string {
  return `${namespace}${SEPARATOR}${name}`
}

/**
 * Splits a qualified name into its parts.
 *
 * @returns undefined for a name that is not qualified.
 */
export function splitName(name: string): QualifiedName | undefined {
  const end = name.indexOf(SEPARATOR)
  const namespace = name.slice(0, Math.max(0, end))
  if (!namespace.includes('/')) return undefined
  return { namespace, name: name.slice(end + SEPARATOR.length) }
}

/** Finds the name by which clients call a model: the name within its repository. */
export function plainName(name: string): string {
  return splitName(name)?.name ?? name
}

/**
 * Finds the qualified name of the model that another model refers to as `name`: the one in the other model's own repository, or
 * else the only one with that name.
 *
 * @param qualified - all qualified names of models that are called `name`.
 * @param namespace - the repository of the model that refers to `name`.
 * @returns `name` unchanged, which belongs to no model, if there is none or several.
 */
export function resolveName(qualified: readonly string[], namespace: string, name: string): string {
  const own = qualifyName(namespace, name)
  if (qualified.includes(own)) return own
  const [only, ...others] = qualified
  return only === undefined || others.length > 0 ? name : only
}

/** Gives the models of an ensemble's steps other names. Another configuration comes back as it is. */
export function renameStepModels(
  config: ModelConfig,
  rename: (model: string) => QualifiedName,
): ModelConfig {
  const scheduling = config.ensemble_scheduling
  if (scheduling === undefined) return config
  const step = scheduling.step.map((one) => {
    const { namespace: model_namespace, name: model_name } = rename(one.model_name)
    return { ...one, model_name, model_namespace }
  })
  return { ...config, ensemble_scheduling: { ...scheduling, step } }
}
