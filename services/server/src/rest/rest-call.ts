import type { IncomingMessage } from 'node:http'
import type { CallContext, Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Admission, AdmissionTicket } from '../admission.ts'
import type { InferenceBackend } from '../inference-backend.ts'
import { ENCODING_HEADER, parseContentEncoding } from './content-encoding.ts'
import { type BodyLimits, readBody } from './read-body.ts'

/** The one header that sets a deadline: whole milliseconds from the arrival of the request's headers. */
export const TIMEOUT_HEADER = 'tutti-timeout-ms'

/** One HTTP request as the route handlers see it. */
export interface RestCall {
  /** Whom the call reaches. */
  readonly backend: InferenceBackend
  readonly context: CallContext
  /** Names from the path, percent-decoded. */
  readonly parameters: Readonly<Record<string, string | undefined>>
  /** A header's value; the first one if it came several times. */
  header(name: string): string | undefined
  /** Takes a place among the requests in work and reads the body; call it once. Both are held until the answer is out. */
  body(): Promise<Uint8Array>
  /**
   * Counts the bytes of the answer, in place of those counted before, until it is out.
   * @throws ServeError OVERLOADED
   */
  holdAnswer(bytes: number): void
}

export interface RestCallOptions extends BodyLimits {
  readonly backend: InferenceBackend
  readonly request: IncomingMessage
  readonly parameters: Readonly<Record<string, string | undefined>>
  readonly context: CallContext
  readonly clock: Clock
  readonly admission: Admission
}

/** A call and what must happen once it was answered. */
export interface OpenRestCall {
  readonly call: RestCall
  /** Gives up its place and the body's bytes. */
  close(): void
}

/** Makes the call of a request. */
export function openRestCall(o: RestCallOptions): OpenRestCall {
  let ticket: AdmissionTicket | undefined
  let answerBytes = 0
  const header = (name: string): string | undefined => headerOf(o.request, name)
  return {
    call: {
      backend: o.backend,
      context: o.context,
      parameters: o.parameters,
      header,
      body: async () => {
        const encoding = parseContentEncoding(header(ENCODING_HEADER))
        ticket = o.admission.admit()
        return readBody(o.request, { ...o, ticket, encoding, signal: o.context.signal })
      },
      holdAnswer: (bytes) => {
        ticket?.release(answerBytes)
        answerBytes = 0
        ticket?.charge(bytes)
        answerBytes = bytes
      },
    },
    close: () => ticket?.close(),
  }
}

/** @throws ServeError INVALID_PARAMETER unless the header is a whole number of milliseconds above 0. */
export function parseTimeout(request: IncomingMessage): number | undefined {
  const written = headerOf(request, TIMEOUT_HEADER)
  if (written === undefined) return undefined
  const timeoutMs = Number(written)
  if (/^\d+$/.test(written) && timeoutMs > 0 && Number.isSafeInteger(timeoutMs)) return timeoutMs
  throw new ServeError(
    'INVALID_PARAMETER',
    `header ${TIMEOUT_HEADER}: got '${written}', want a whole number of milliseconds above 0`,
    { details: { field: TIMEOUT_HEADER } },
  )
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}
