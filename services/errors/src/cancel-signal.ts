/**
 * How a piece of work hears that it is to end. An AbortSignal is one; this is all of it that our code uses, because the
 * signal of a call can then be a plain object: an EventTarget for every call would cost more than the rest of its context.
 * `reason` is a ServeError, wherever we abort ourselves.
 */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, o?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}
