import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Clock, signalError } from '@tutti/chassis'
import type { CancelSignal } from '@tutti/errors'
import { KubeError, noAnswer } from '../kube-error.ts'

/** One request and its answer, which a signal, a limit or the transport's end may break off. */
export interface Exchange {
  /** Sends the request. Resolves with the answer's head. */
  send(body: string | undefined): Promise<IncomingMessage>
  /** Breaks it off: the caller that waits for the answer gets `error`. */
  abort(error: Error): void
  /** Sets the limit anew, from now on. `error` says what took too long. */
  limit(ms: number, error: () => Error): void
  /** Returns what to throw for an error that the answer's stream gave. */
  toError(error: unknown): Error
  /** Takes listeners and timers back. */
  finish(): void
}

/** @param title - of the request, for errors. */
export function createExchange(
  request: ClientRequest,
  o: { readonly title: string; readonly clock: Clock; readonly signal?: CancelSignal | undefined },
): Exchange {
  const { clock, signal } = o
  let reason: Error | undefined
  let stopTimer: (() => void) | undefined
  const abort = (error: Error): void => {
    reason ??= error
    request.destroy()
  }
  const onAbort = (): void => {
    if (signal !== undefined) abort(signalError(signal))
  }
  signal?.addEventListener('abort', onAbort, { once: true })
  const toError = (error: unknown): Error => reason ?? toConnectionError(o.title, error)
  return {
    send: (body) =>
      new Promise((resolve, reject) => {
        request.once('response', resolve)
        // An error after the answer's head comes to the answer's reader too.
        request.on('error', (error) => reject(toError(error)))
        request.once('close', () => reject(toError(new Error('the connection was closed'))))
        if (signal?.aborted) onAbort()
        request.end(body)
      }),
    abort,
    limit: (ms, error) => {
      stopTimer?.()
      stopTimer = clock.setTimer(ms, () => abort(error()))
    },
    toError,
    finish: () => {
      stopTimer?.()
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

function toConnectionError(title: string, error: unknown): Error {
  if (error instanceof KubeError) return error
  return noAnswer('NoConnection', `${title}: ${describeError(error)}`, error)
}

/** The text of an error of a connection. When no address of a name takes it, Node's error has a code and no message. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  return 'code' in error ? String(error.code) : error.name
}
