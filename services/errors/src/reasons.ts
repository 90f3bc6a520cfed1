import type { StatusCode } from './codes.ts'

/**
 * Every reason that an error of Tutti can carry, with its usual code and what it means.
 * A reason is never reused for something else. docs/errors.md says what to do about each; `npm run gen` writes it.
 */
export const REASONS = {
  CONFIG_SYNTAX: { code: 'INVALID_ARGUMENT', meaning: 'a config.pbtxt does not parse' },
  CONFIG_INVALID: { code: 'INVALID_ARGUMENT', meaning: 'a model configuration breaks a rule' },
  CONFIG_MISSING: { code: 'NOT_FOUND', meaning: 'a model has no configuration' },
  ENSEMBLE_INVALID: { code: 'INVALID_ARGUMENT', meaning: 'an ensemble graph breaks a rule' },
  ENSEMBLE_DEPENDENCY: {
    code: 'INVALID_ARGUMENT',
    meaning: 'an ensemble depends on a model that is absent, invalid or not loaded',
  },
  REPOSITORY_UNREADABLE: { code: 'INTERNAL', meaning: 'a model repository cannot be read' },
  ARTIFACT_NOT_FOUND: { code: 'NOT_FOUND', meaning: 'there is nothing at the address of a model' },
  ARTIFACT_DENIED: {
    code: 'PERMISSION_DENIED',
    meaning: 'a model may not be read from its address',
  },
  ARTIFACT_UNAVAILABLE: { code: 'UNAVAILABLE', meaning: 'a model could not be fetched' },
  ARTIFACT_UNTRUSTED: {
    code: 'FAILED_PRECONDITION',
    meaning: 'the certificate of a server that has a model is not trusted',
  },
  ARTIFACT_MISMATCH: {
    code: 'DATA_LOSS',
    meaning: 'what was fetched or found does not have the wanted digest',
  },
  ARTIFACT_INVALID: {
    code: 'INVALID_ARGUMENT',
    meaning: 'what was fetched is no archive of a model, or leads out of its folder',
  },
  ARTIFACT_TOO_LARGE: {
    code: 'RESOURCE_EXHAUSTED',
    meaning: 'what is to be fetched is over a bound of bytes or files',
  },
  ARTIFACT_NOT_STORED: { code: 'INTERNAL', meaning: 'a model could not be written to disk' },
  MODEL_NOT_FOUND: { code: 'NOT_FOUND', meaning: 'no such model or version' },
  MODEL_AMBIGUOUS: {
    code: 'INVALID_ARGUMENT',
    meaning: 'models of several repositories have the name',
  },
  MODEL_NOT_READY: { code: 'UNAVAILABLE', meaning: 'the model version is known but not ready' },
  MODEL_STARTING: {
    code: 'UNAVAILABLE',
    meaning:
      'a request waited for the first pod of a model that had none, and that is not ready yet',
  },
  MODEL_POLL_FAILED: {
    code: 'INTERNAL',
    meaning: 'a model that was to be loaded could not be read from its repository',
  },
  MODEL_LOAD_OVERTAKEN: {
    code: 'INVALID_ARGUMENT',
    meaning: 'the model was unloaded while this load went on',
  },
  MODEL_LOAD_FAILED: { code: 'INTERNAL', meaning: 'an engine could not load the model' },
  MODEL_WARMUP_FAILED: { code: 'INTERNAL', meaning: 'a warm-up sample failed' },
  MODEL_CONTROL_REFUSED: {
    code: 'UNAVAILABLE',
    meaning: 'load and unload are not allowed here',
  },
  BACKEND_UNSUPPORTED: {
    code: 'INVALID_ARGUMENT',
    meaning: 'no engine here serves this platform or backend',
  },
  DEVICE_UNAVAILABLE: { code: 'INVALID_ARGUMENT', meaning: 'the device asked for is absent' },
  INVALID_VERSION: { code: 'INVALID_ARGUMENT', meaning: 'a model version does not parse' },
  INVALID_PARAMETER: { code: 'INVALID_ARGUMENT', meaning: 'a request parameter is refused' },
  INVALID_REQUEST: { code: 'INVALID_ARGUMENT', meaning: 'a request does not fit the model' },
  INVALID_TENSOR_DATA: {
    code: 'INVALID_ARGUMENT',
    meaning: "a tensor's bytes do not fit its datatype and shape",
  },
  INCOMPLETE_STRING: {
    code: 'INVALID_ARGUMENT',
    meaning: 'the last element of a BYTES tensor is cut short',
  },
  SHAPE_MISMATCH: { code: 'INVALID_ARGUMENT', meaning: 'a shape does not fit the declared one' },
  DATATYPE_MISMATCH: { code: 'INVALID_ARGUMENT', meaning: 'a datatype is not the declared one' },
  UNSUPPORTED: { code: 'UNIMPLEMENTED', meaning: 'a known feature that is not offered here' },
  MALFORMED_MESSAGE: { code: 'INVALID_ARGUMENT', meaning: 'bytes that are no valid message' },
  NOT_FOUND: { code: 'NOT_FOUND', meaning: 'no such resource' },
  PAUSED: {
    code: 'FAILED_PRECONDITION',
    meaning: 'changes wait, because the Model or its Deployment is paused',
  },
  UNAUTHENTICATED: {
    code: 'UNAUTHENTICATED',
    meaning: 'a request brings no bearer token that is known',
  },
  ACCESS_DENIED: {
    code: 'PERMISSION_DENIED',
    meaning: 'the identity of the caller may not do this',
  },
  QUOTA_EXCEEDED: {
    code: 'RESOURCE_EXHAUSTED',
    meaning: 'the identity of the caller asks more than its quota',
  },
  FOREIGN_PAGE: {
    code: 'PERMISSION_DENIED',
    meaning: 'a page of another site would change the server or call its console',
  },
  METHOD_NOT_ALLOWED: { code: 'UNIMPLEMENTED', meaning: 'the HTTP method is not allowed here' },
  MESSAGE_TOO_LARGE: { code: 'RESOURCE_EXHAUSTED', meaning: 'a message is over a size bound' },
  QUEUE_FULL: { code: 'UNAVAILABLE', meaning: "a model's queue is at its configured bound" },
  QUEUE_TIMEOUT: { code: 'UNAVAILABLE', meaning: 'a request waited longer than its queue timeout' },
  SEQUENCE_NOT_STARTED: {
    code: 'INVALID_ARGUMENT',
    meaning: 'a request continues a sequence that is not known',
  },
  NESTING_TOO_DEEP: {
    code: 'FAILED_PRECONDITION',
    meaning: 'models call one another deeper than is allowed',
  },
  OVERLOADED: { code: 'RESOURCE_EXHAUSTED', meaning: 'a bound of the server is reached' },
  DEADLINE_EXCEEDED: { code: 'DEADLINE_EXCEEDED', meaning: "the request's time is over" },
  CANCELLED: { code: 'CANCELLED', meaning: 'the client went away' },
  STEP_UNAVAILABLE: { code: 'UNAVAILABLE', meaning: 'no replica can serve the step' },
  STEP_TIMEOUT: {
    code: 'DEADLINE_EXCEEDED',
    meaning: 'a step has not ended within its `timeout`',
  },
  STEP_LOST: {
    code: 'UNAVAILABLE',
    meaning: 'contact with a replica was lost; it may have executed',
  },
  POD_UNREACHABLE: { code: 'UNAVAILABLE', meaning: 'a pod does not answer the operator' },
  REVISION_GONE: { code: 'UNAVAILABLE', meaning: 'the pinned revision is no longer served' },
  ENGINE_FAILED: { code: 'INTERNAL', meaning: 'the engine failed while it executed' },
  ENGINE_STOPPED: { code: 'UNAVAILABLE', meaning: 'the engine stopped under the request' },
  RESPONSE_INVALID: { code: 'INTERNAL', meaning: "a model's response does not fit its contract" },
  CONDITION_FAILED: {
    code: 'FAILED_PRECONDITION',
    meaning: 'a condition of a graph has no value for what it reads',
  },
  ITEMS_INVALID: {
    code: 'FAILED_PRECONDITION',
    meaning: 'the items or iterations of a step are too many, or do not fit together',
  },
  OUTPUT_ABSENT: {
    code: 'FAILED_PRECONDITION',
    meaning: 'the steps that make a required output were skipped',
  },
  SERVER_NOT_READY: { code: 'UNAVAILABLE', meaning: 'the server does not take requests yet' },
  SERVER_STOPPING: { code: 'UNAVAILABLE', meaning: 'the server is going away' },
  FLAG_INVALID: { code: 'INVALID_ARGUMENT', meaning: 'a command line flag is refused' },
  SETTING_INVALID: { code: 'INVALID_ARGUMENT', meaning: 'a setting is refused' },
  INTERNAL: { code: 'INTERNAL', meaning: 'a bug, or an error of unknown kind' },
} as const satisfies Record<string, { readonly code: StatusCode; readonly meaning: string }>

export type Reason = keyof typeof REASONS

/** Tells whether a text is a reason of Tutti. */
export function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text)
}
