import type { StatusCode } from './codes.ts'
import { REASONS, type Reason } from './reasons.ts'

/** Place of an error. Every value is text, so that it fits `google.rpc.ErrorInfo` metadata and HTTP headers. */
export interface ErrorDetails {
  readonly ensemble?: string
  readonly step?: string
  /** Items of the step, e.g. `12` or `0..31`, or its iteration in a loop. */
  readonly item?: string
  /** Items or iterations of the steps around the ensemble of the step, the outermost first, e.g. `[12][3]`. */
  readonly within?: string
  readonly model?: string
  readonly version?: string
  readonly replica?: string
  readonly attempt?: string
  /** The field of the input that was refused, as a path. */
  readonly field?: string
  /** The failure of a step whose fallback failed too. */
  readonly firstError?: string
}

export interface ServeErrorOptions {
  /** Status code. Default: the usual code of the reason. */
  readonly code?: StatusCode
  readonly details?: ErrorDetails
  /** Milliseconds after which the same request may go well. Default: not known. */
  readonly retryAfterMs?: number | undefined
  /** True if the request was tried again before it failed. Default false. */
  readonly wasRetried?: boolean
  readonly cause?: unknown
}

/** Characters of an error's text: what it quotes may come from a client, and is held, sent and logged with it. */
const MAX_TEXT = 2 ** 16
const CUT = ' ... (cut)'

function capped(text: string): string {
  return text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT - CUT.length) + CUT
}

/** The one error of Tutti. Callers branch on `code` and `reason`, never on the text, which is cut after 65,536 characters. */
export class ServeError extends Error {
  override readonly name = 'ServeError'
  readonly code: StatusCode
  readonly reason: Reason
  readonly details: ErrorDetails
  readonly retryAfterMs: number | undefined
  /** True if the request was tried again before it failed: who is around the call tries no more. Known within a process. */
  readonly wasRetried: boolean

  constructor(reason: Reason, message: string, options: ServeErrorOptions = {}) {
    super(capped(message), options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.code = options.code ?? REASONS[reason].code
    this.details = options.details ?? {}
    this.retryAfterMs = options.retryAfterMs
    this.wasRetried = options.wasRetried ?? false
  }

  /** Returns `error` itself if it is a ServeError; wraps anything else as INTERNAL with `cause`. */
  static from(error: unknown): ServeError {
    if (error instanceof ServeError) return error
    const message = error instanceof Error ? error.message : String(error)
    return new ServeError('INTERNAL', message, { cause: error })
  }

  /** Copies the error, with `prefix` before its text. */
  withPrefix(prefix: string): ServeError {
    return this.#copy(prefix + this.message, this.details)
  }

  /** Copies the error, with `suffix` after its text. */
  withSuffix(suffix: string): ServeError {
    return this.#copy(this.message + suffix, this.details)
  }

  /** Copies the error with further details. A detail that the error already has stays, because the innermost place knows best. */
  withDetails(details: ErrorDetails): ServeError {
    return this.#copy(this.message, { ...details, ...this.details })
  }

  /** Copies the error as one that happened within items, or an iteration, of a step that has run the ensemble where it happened. */
  withinItems(items: string): ServeError {
    const within = `[${items}]${this.details.within ?? ''}`
    return this.#copy(this.message, { ...this.details, within })
  }

  /** Copies the error as that of a request that was tried again. */
  afterRetries(): ServeError {
    return this.#copy(this.message, this.details, true)
  }

  #copy(message: string, details: ErrorDetails, wasRetried = this.wasRetried): ServeError {
    const copy = new ServeError(this.reason, message, {
      code: this.code,
      details,
      retryAfterMs: this.retryAfterMs,
      wasRetried,
      cause: this.cause,
    })
    if (this.stack !== undefined) copy.stack = this.stack
    return copy
  }
}
