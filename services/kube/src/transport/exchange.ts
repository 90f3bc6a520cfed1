import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Clock, errorText, signalError } from '@tutti/chassis'
import type { CancelSignal } from '@tutti/errors'
import { KubeError, noAnswer } from '../kube-error.ts'

/** One request and its answer. A signal, a limit or the transport's end may abort it. */
export interface Exchange {
  /** Sends the request. Resolves with the answer's head. */
  send(body: string | undefined): Promise<IncomingMessage>
  /** Aborts the exchange: the caller that waits for the answer gets `error`. */
  abort(error: Error): void
  /** Aborts the exchange after `ms` from now, in place of an earlier limit. @param error - makes the error to abort with. */
  limit(ms: number, error: () => Error): void
  /** Converts an error of the answer's stream to the error of the abort, or to a KubeError without an abort. */
  toError(error: unknown): Error
  /** Removes the listener of the signal and the timer of the limit. */
  finish(): void
}

/** Makes the exchange of a request that is not sent yet. @param o.title - the request in words, for errors. */
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
  return noAnswer('NoConnection', `${title}: ${errorText(error)}`, error)
}
