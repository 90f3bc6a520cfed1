/*
 * Names in the pods that the operator makes, for those that look for them in the cluster.
 */

/** The label of each pod of Tutti that names its program: `step` or `router`. */
export const COMPONENT = 'app.kubernetes.io/component'
/** The label of each object of a Model, with the Model's metadata.name. */
export const MODEL_LABEL = 'tutti.dev/model'
/** On every ControllerRevision of ours: what was accepted, `model` or `ensemble`. */
export const ACCEPTED_LABEL = 'tutti.dev/accepted'

/** The init container that brings the model's directory, or checks what is mounted. */
export const FETCH = 'fetch'
/** The one that checks what another image has brought. */
export const VERIFY = 'verify'
/** Reasons of failures of these containers. */
export const FETCH_REASONS: Readonly<Record<string, string>> = {
  [FETCH]: 'FetchFailed',
  [VERIFY]: 'FetchFailed',
}
