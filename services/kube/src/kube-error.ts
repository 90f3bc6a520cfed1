/** One thing that an API server found wrong. */
export interface KubeErrorCause {
  readonly reason?: string
  readonly message?: string
  /** A path in the object, `spec.replicas` say. */
  readonly field?: string
}

export interface KubeErrorOptions {
  readonly status: number
  readonly reason: string
  readonly message: string
  readonly causes?: readonly KubeErrorCause[]
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

/**
 * The failure of a request to an API server: the server answered with an error (metav1.Status), or gave no answer. Branch by the
 * predicates below, never by the message.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  /** HTTP status; 0 if no answer came, in which case the server may still have carried out the request. */
  readonly status: number
  /** metav1.StatusReason (`NotFound`, `Conflict`, ...); without an answer `NoConnection`, `Timeout` or `BadResponse`. */
  readonly reason: string
  readonly causes: readonly KubeErrorCause[]
  /** Milliseconds that the server asks the caller to wait. */
  readonly retryAfterMs: number | undefined

  constructor(o: KubeErrorOptions) {
    super(o.message, o.cause === undefined ? {} : { cause: o.cause })
    this.status = o.status
    this.reason = o.reason
    this.causes = o.causes ?? []
    this.retryAfterMs = o.retryAfterMs
  }
}

/** Builds the error of a request without a usable answer; its status is 0. */
export function noAnswer(
  reason: 'NoConnection' | 'Timeout' | 'BadResponse' | 'NoCredentials' | 'Closed',
  message: string,
  cause?: unknown,
): KubeError {
  return new KubeError({ status: 0, reason, message, cause })
}

/** Tells whether the object, its namespace or its kind does not exist. */
export function isNotFound(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 404
}

/**
 * Tells whether another writer changed the object or owns a field, so that the caller must decide anew. Excludes isAlreadyExists.
 */
export function isConflict(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists'
}

export function isAlreadyExists(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 409 && error.reason === 'AlreadyExists'
}

/**
 * Tells whether the object with the requested uid is gone; another object may have its name. Server-side apply with a uid fails
 * so instead of creating the object anew.
 */
export function isUidMismatch(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  if (error.status === 422) return error.causes.some(({ field }) => field === 'metadata.uid')
  // The server has no reason of its own for this Conflict.
  return error.status === 409 && /\buid\b/i.test(error.message)
}

/** Tells whether a resourceVersion or a continue token is too old, so that the caller must list again. */
export function isExpired(error: unknown): error is KubeError {
  return error instanceof KubeError && (error.status === 410 || error.reason === 'Expired')
}

export function isForbidden(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 403
}

/** Tells whether a create failed because its namespace is being deleted. */
export function isNamespaceTerminating(error: unknown): error is KubeError {
  return isForbidden(error) && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}

/** Tells whether the same request may succeed later: there was no answer, an overload or a fault of the server. */
export function isTransient(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  if (isOfUnknownField(error) || isOfSize(error)) return false
  return TRANSIENT.has(error.status) || error.status >= 500
}

/** Tells whether the same request never succeeds: the server refuses the object or does not know one of its fields. */
export function isTerminal(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  if (isOfSize(error)) return true
  return isOfUnknownField(error) || (TERMINAL.has(error.status) && !isUidMismatch(error))
}

/**
 * Tells whether an error is of a field that the schema lacks. Server-side apply answers that with a 500 like any fault, without a
 * reason.
 */
function isOfUnknownField(error: KubeError): boolean {
  return error.status === 500 && error.message.includes('field not declared in schema')
}

/**
 * Tells whether an object does not fit into etcd, the server's storage, which takes 1.5 MiB. What etcd and its client say comes
 * as a 500, and has no reason of its own.
 */
function isOfSize({ status, message }: KubeError): boolean {
  return status === 413 || (status === 500 && OF_SIZE.test(message))
}

const OF_SIZE = /request is too large|message larger than max/

/** No answer, request timeout, too many requests. */
const TRANSIENT: ReadonlySet<number> = new Set([0, 408, 429])
/** Bad request, method, media type, too large, invalid. */
const TERMINAL: ReadonlySet<number> = new Set([400, 405, 406, 413, 415, 422])
