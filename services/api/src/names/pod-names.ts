/*
 * Names in the pods that the operator makes, for those that look for them in the cluster.
 */

/** The label of each pod of Tutti that names its program: `step` or `router`. */
export const COMPONENT = 'app.kubernetes.io/component'

/** Tells whether an object is a router's, such as its pod or its Deployment. */
export function isOfRouter(object: {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> }
}): boolean {
  return object.metadata.labels?.[COMPONENT] === 'router'
}

/** The label of each object around the built-ins of a namespace, its step pods among them. Its value is `true`. */
export const BUILTINS_LABEL = 'tutti.dev/builtins'

/** Tells whether an object is one of those around the built-ins of a namespace. */
export function isOfBuiltins(object: {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> }
}): boolean {
  return object.metadata.labels?.[BUILTINS_LABEL] === 'true'
}

/** The label of each object of an Ensemble, its pods included, with the Ensemble's metadata.name. */
export const ENSEMBLE_LABEL = 'tutti.dev/ensemble'
/** The label of each object of a Model, with the Model's metadata.name. */
export const MODEL_LABEL = 'tutti.dev/model'
/**
 * The label of each ControllerRevision that Tutti writes. Its value is the kind of the accepted resource: `model` or
 * `ensemble`.
 */
export const ACCEPTED_LABEL = 'tutti.dev/accepted'

/** Prefix of the labels of a pod that name the Models which it serves, the host's own included. Services select by them. */
export const SERVES_PREFIX = 'model.tutti.dev/'

/** Returns the label of each pod that serves a Model, in its own pods or those of another one. @param model - metadata.name */
export function servesLabel(model: string): string {
  return `${SERVES_PREFIX}${model}`
}

/** Lists the Models that a pod, or the pods of a Deployment, serve, by metadata.name. */
export function modelsServedBy(labels: Readonly<Record<string, string>> = {}): readonly string[] {
  const own = labels[MODEL_LABEL]
  const served = Object.keys(labels)
    .filter((key) => key.startsWith(SERVES_PREFIX))
    .map((key) => key.slice(SERVES_PREFIX.length))
  return [...new Set([...(own === undefined ? [] : [own]), ...served])]
}

/** Name of the init container that fetches the model's directory, or checks a directory that is mounted. */
export const FETCH = 'fetch'
/** Name of the init container that checks a model's directory if another image has brought it. */
export const VERIFY = 'verify'

/** True for an init container that fetches or checks the files of a Model. Those of guests have the guest's name at the end. */
export function isFetchContainer(name: string): boolean {
  return name === FETCH || name.startsWith(`${FETCH}-`)
}

/** True for an init container that checks the files which another image has brought; see isFetchContainer. */
export function isVerifyContainer(name: string): boolean {
  return name === VERIFY || name.startsWith(`${VERIFY}-`)
}

/** Returns the reason of a failure of this container, if it brings or checks files; else undefined. */
export function fetchReasonOf(container: string): string | undefined {
  const bringsFiles = isFetchContainer(container) || isVerifyContainer(container)
  return bringsFiles ? 'FetchFailed' : undefined
}
