import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CallContext, CallScope, LoopTurns } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RestBody } from '@tutti/protocol'
import {
  type Admission,
  type AdmissionTicket,
  type ClientRequest,
  type ControlCall,
  connectionName,
  type InferenceBackend,
  type ResolvedModel,
  takenBytes,
  type WaitingCall,
} from '@tutti/serving'
import type { NamedTensor } from '@tutti/tensor'
import { parseContentEncoding } from '../answers/content-encoding.ts'
import { ENCODING_HEADER } from '../answers/rest-reply.ts'
import type { BodyKind, BodySource, ParsedBodies } from '../bodies/body-parsers.ts'
import type { JsonThread } from '../bodies/json-thread.ts'
import { readBody } from '../bodies/read-body.ts'

/** The one header that sets a deadline: whole milliseconds from the arrival of the request's headers. */
const TIMEOUT_HEADER = 'tutti-timeout-ms'

/** Bytes of an answer that is made at once; what is larger is made a part in a turn of the loop. */
const MAX_TURN_BYTES = 64 * 1024

export interface RestCallOptions {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Names from the path, percent-decoded. */
  readonly parameters: Readonly<Record<string, string | undefined>>
  /** Which models the call reaches. */
  readonly backend: InferenceBackend
  readonly scope: CallScope
  /** Absent for calls that are no inference. */
  readonly observed: ClientRequest | undefined
  readonly admission: Admission
  /** Bytes of the body, after decompression. */
  readonly maxInputBytes: number
  readonly json: JsonThread
  readonly turns: LoopTurns
}

/** One HTTP request as the routes see it. */
export class RestCall implements WaitingCall {
  readonly backend: InferenceBackend
  readonly context: CallContext
  readonly parameters: RestCallOptions['parameters']
  /** That the client gave its request; '' for none, and until it is read. */
  requestId = ''
  readonly #o: RestCallOptions
  #ticket: AdmissionTicket | undefined
  #answerBytes = 0
  #ended: ServeError | undefined

  constructor(o: RestCallOptions) {
    this.#o = o
    this.backend = o.backend
    this.context = { ...o.scope.context, memory: this }
    this.parameters = o.parameters
  }

  /** It has a place among the requests in work. */
  get isInWork(): boolean {
    return this.#ticket?.hasPlace ?? false
  }

  /** The name of its connection. */
  get connection(): string {
    return connectionName(this.#o.request.socket)
  }

  /** Who asks. */
  get caller(): Pick<ControlCall, 'headers' | 'socket' | 'backend'> {
    const { headers, socket } = this.#o.request
    return { headers, socket, backend: this.backend }
  }

  /** The query, which follows `?` in the address. */
  get query(): URLSearchParams {
    const [, ...query] = (this.#o.request.url ?? '').split('?')
    return new URLSearchParams(query.join('?'))
  }

  /** Finds the model of an inference. @throws ServeError as the backend does. */
  resolve(name: string, version: string): ResolvedModel {
    const { backend } = this
    return this.#o.observed?.resolve(backend, name, version) ?? backend.resolve(name, version)
  }

  /** Notes an error that the client gets within an answer. */
  failed(error: ServeError): void {
    this.#o.observed?.failed(error)
  }

  /** Sets a header of the answer, also of one that says an error. */
  setHeader(name: string, value: string): void {
    if (!this.#o.response.headersSent) this.#o.response.setHeader(name, value)
  }

  /** A header's value; the first one if it came several times. */
  header(name: string): string | undefined {
    return headerOf(this.#o.request, name)
  }

  /** Reads the body, under the bound of its class, then takes a place among the requests in work, until there is an answer; call it once. */
  body(): Promise<Uint8Array> {
    const { request, admission, maxInputBytes } = this.#o
    const encoding = parseContentEncoding(this.header(ENCODING_HEADER))
    const ticket = admission.open(request.socket, this.backend.share).belongTo(this)
    this.#ticket = ticket
    const { signal } = this.context
    return readBody(request, { maxInputBytes, ticket, encoding, signal })
  }

  /** Parses the body, which is gone after that. @throws ServeError as the parser does, or the signal's reason. */
  parse<K extends BodyKind>(
    kind: K,
    body: Uint8Array,
    more: Omit<BodySource, 'body'> = {},
  ): ParsedBodies[K] | Promise<ParsedBodies[K]> {
    const { json, admission } = this.#o
    const { connection } = this
    const { signal } = this.context
    return json.parse(kind, { ...more, body }, { signal, connection, admission })
  }

  /**
   * Takes the parts of an answer as they are made, and counts them: those of a small one at once, of a large one at most one
   * in a turn of the loop.
   *
   * @param outputs - what the answer is made of, counted if that takes more than one turn.
   * @throws ServeError as the parts do, OVERLOADED, or the signal's reason.
   */
  encode(
    parts: Generator<Uint8Array, RestBody>,
    outputs: readonly NamedTensor[],
  ): RestBody | Promise<RestBody> {
    for (let madeBytes = 0; madeBytes <= MAX_TURN_BYTES; ) {
      const { done, value } = parts.next()
      if (done === true) return value
      madeBytes += value.byteLength
      this.#chargeAnswer(value.byteLength)
    }
    this.#chargeAnswer(outputs.reduce((sum, { data }) => sum + data.byteLength, 0))
    return this.#encodeByTurns(parts)
  }

  async #encodeByTurns(parts: Generator<Uint8Array, RestBody>): Promise<RestBody> {
    const { signal } = this.context
    for (;;) {
      await this.#o.turns.next()
      if (signal.aborted) throw signal.reason
      const { done, value } = parts.next()
      if (done === true) return value
      this.#chargeAnswer(value.byteLength)
    }
  }

  /** Counts bytes that the call holds, or gives back with a negative number. @throws ServeError OVERLOADED */
  charge(bytes: number): void {
    this.#ticket?.charge(bytes)
  }

  /** Gives back the bytes of the answer: what was made of it is out. */
  releaseAnswer(): void {
    this.#ticket?.release(this.#answerBytes)
    this.#answerBytes = 0
  }

  /** Counts the bytes of the answer, in place of those counted before, until it is out. @throws ServeError OVERLOADED */
  holdAnswer(bytes: number): void {
    if (this.#ended !== undefined) throw this.#ended
    this.releaseAnswer()
    this.#chargeAnswer(bytes)
    this.#ticket?.leave()
  }

  /** A part of an answer waits for the client from now on, or the client has taken it. */
  offer(isWaiting: boolean): void {
    this.#ticket?.waitForClient(isWaiting ? true : undefined)
  }

  /** For the admission: while the body comes its bytes, then those of the answer. */
  get movedBytes(): number {
    const { complete, socket } = this.#o.request
    return complete ? takenBytes(socket) : socket.bytesRead
  }

  /** For the admission: others need the bytes for whose client the call waits. */
  endWaiting(error: ServeError): void {
    this.#ended = error
    if (this.#o.response.headersSent) this.#o.response.destroy()
    else this.#o.scope.cancel(error)
  }

  #chargeAnswer(bytes: number): void {
    this.#ticket?.charge(bytes)
    this.#answerBytes += bytes
  }

  /** The answer is out, or its client has left: gives back the place and the bytes of body and answer. @param error - why it is not out. */
  close(error?: ServeError): void {
    this.#ticket?.close()
    this.#o.observed?.ended(error)
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
