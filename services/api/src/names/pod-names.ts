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

/** The label of each object of a Model, with the Model's metadata.name. */
export const MODEL_LABEL = 'tutti.dev/model'
/**
 * The label of each ControllerRevision that Tutti writes. Its value is the kind of the accepted resource: `model` or
 * `ensemble`.
 */
export const ACCEPTED_LABEL = 'tutti.dev/accepted'

/** Name of the init container that fetches the model's directory, or checks a directory that is mounted. */
export const FETCH = 'fetch'
/** Name of the init container that checks a model's directory if another image has brought it. */
export const VERIFY = 'verify'
/** Reasons of failures, by the name of the init container that failed. */
export const FETCH_REASONS: Readonly<Record<string, string>> = {
  [FETCH]: 'FetchFailed',
  [VERIFY]: 'FetchFailed',
}
