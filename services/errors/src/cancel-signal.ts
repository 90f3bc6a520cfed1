/**
 * The signal that tells a piece of work to end: the part of AbortSignal that Tutti uses, so every AbortSignal fits. The signal
 * of a call can be a plain object, because an EventTarget for every call would cost more than the rest of its context. `reason`
 * is a ServeError wherever Tutti itself aborts.
 */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, o?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}
