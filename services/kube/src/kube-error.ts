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
 * Why a request to an API server did not succeed: its answer (metav1.Status), or that there was none. Branch by the
 * predicates below, never by the message.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  /** HTTP's; 0 if no answer came: the request may or may not have been carried out. */
  readonly status: number
  /** metav1.StatusReason (`NotFound`, `Conflict`, ...); without an answer `NoConnection`, `Timeout` or `BadResponse`. */
  readonly reason: string
  readonly causes: readonly KubeErrorCause[]
  /** How long the server asks to wait. */
  readonly retryAfterMs: number | undefined

  constructor(o: KubeErrorOptions) {
    super(o.message, o.cause === undefined ? {} : { cause: o.cause })
    this.status = o.status
    this.reason = o.reason
    this.causes = o.causes ?? []
    this.retryAfterMs = o.retryAfterMs
  }
}

/** The error of a request to which no usable answer came. */
export function noAnswer(
  reason: 'NoConnection' | 'Timeout' | 'BadResponse' | 'NoCredentials' | 'Closed',
  message: string,
  cause?: unknown,
): KubeError {
  return new KubeError({ status: 0, reason, message, cause })
}

/** The object, its namespace or its kind is not there. */
export function isNotFound(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 404
}

/** Somebody else changed the object or holds a field; what is written has to be decided anew. Not isAlreadyExists. */
export function isConflict(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists'
}

export function isAlreadyExists(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 409 && error.reason === 'AlreadyExists'
}

/**
 * The object with the uid that was named is gone; there may be another of its name. A uid in server-side apply gives it
 * instead of creating the object anew.
 */
export function isUidMismatch(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  if (error.status === 422) return error.causes.some(({ field }) => field === 'metadata.uid')
  // The server has no reason of its own for this Conflict.
  return error.status === 409 && /\buid\b/i.test(error.message)
}

/** A resourceVersion or a continue token is too old: list again. */
export function isExpired(error: unknown): error is KubeError {
  return error instanceof KubeError && (error.status === 410 || error.reason === 'Expired')
}

export function isForbidden(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 403
}

/** A create in a namespace that is being deleted. */
export function isNamespaceTerminating(error: unknown): error is KubeError {
  return isForbidden(error) && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}

/** The same request may succeed later without anybody's doing: no answer, overload, a fault of the server. */
export function isTransient(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  if (isOfUnknownField(error) || isOfSize(error)) return false
  return TRANSIENT.has(error.status) || error.status >= 500
}

/** The same request never succeeds with this server: the object is refused, or the server does not know a field of it. */
export function isTerminal(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  if (isOfSize(error)) return true
  return isOfUnknownField(error) || (TERMINAL.has(error.status) && !isUidMismatch(error))
}

/** Server-side apply of a field that the schema lacks is a 500 like any fault, and has no reason of its own. */
function isOfUnknownField(error: KubeError): boolean {
  return error.status === 500 && error.message.includes('field not declared in schema')
}

/**
 * The object does not fit into the server's storage, etcd, which takes 1.5 MiB. What etcd and its client say comes as a 500, and has no
 * reason of its own.
 */
function isOfSize({ status, message }: KubeError): boolean {
  return status === 413 || (status === 500 && OF_SIZE.test(message))
}

const OF_SIZE = /request is too large|message larger than max/

/** No answer, request timeout, too many requests. */
const TRANSIENT: ReadonlySet<number> = new Set([0, 408, 429])
/** Bad request, method, media type, too large, invalid. */
const TERMINAL: ReadonlySet<number> = new Set([400, 405, 406, 413, 415, 422])
