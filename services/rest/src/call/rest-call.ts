import type { CallContext, CallScope, LoopTurns } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Exchange } from '@tutti/http'
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
  readonly exchange: Exchange
  /** Names from the path, percent-decoded. */
  readonly parameters: Readonly<Record<string, string | undefined>>
  /** The backend whose models the call reaches. */
  readonly backend: InferenceBackend
  readonly scope: CallScope
  /** The request as it is counted and observed; undefined for calls that are no inference. */
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
  /** Id that the client gave its request; '' if it gave none, and until the body is read. */
  requestId = ''
  readonly #options: RestCallOptions
  #ticket: AdmissionTicket | undefined
  #answerBytes = 0
  #ended: ServeError | undefined

  constructor(o: RestCallOptions) {
    this.#options = o
    this.backend = o.backend
    this.context = { ...o.scope.context, memory: this }
    this.parameters = o.parameters
  }

  /** True while the call has a place among the requests in work. */
  get isInWork(): boolean {
    return this.#ticket?.hasPlace ?? false
  }

  /** The name of its connection. */
  get connection(): string {
    return connectionName(this.#options.exchange.socket)
  }

  /** The caller, as the checks of control calls take it. */
  get caller(): Pick<ControlCall, 'headers' | 'socket' | 'backend'> {
    const { head, socket } = this.#options.exchange
    return { headers: head.headers, socket, backend: this.backend }
  }

  /** The query, which follows `?` in the address. */
  get query(): URLSearchParams {
    const [, ...query] = this.#options.exchange.head.target.split('?')
    return new URLSearchParams(query.join('?'))
  }

  /** Finds the model of an inference. @throws ServeError as the backend does. */
  resolve(name: string, version: string): ResolvedModel {
    const { backend } = this
    return this.#options.observed?.resolve(backend, name, version) ?? backend.resolve(name, version)
  }

  /** Notes an error that the client gets within an answer. */
  failed(error: ServeError): void {
    this.#options.observed?.failed(error)
  }

  /** Sets a header of the answer, also of one that says an error. */
  setHeader(name: string, value: string): void {
    this.#options.exchange.setHeader(name, value)
  }

  /** Reads a header's value; the first one if it came several times. */
  header(name: string): string | undefined {
    return headerOf(this.#options.exchange, name)
  }

  /**
   * Reads the body, of at most `maxInputBytes`, then takes a place among the requests in work. Call it once.
   *
   * @throws as `readBody`.
   */
  body(): Promise<Uint8Array> {
    const { exchange, admission, maxInputBytes } = this.#options
    const encoding = parseContentEncoding(this.header(ENCODING_HEADER))
    const ticket = admission.open(exchange.socket, this.backend.share).belongTo(this)
    this.#ticket = ticket
    const { signal } = this.context
    return readBody(exchange, { maxInputBytes, ticket, encoding, signal })
  }

  /** Parses the body, which must not be used afterwards. @throws ServeError as the parser does, or the signal's reason. */
  parse<K extends BodyKind>(
    kind: K,
    body: Uint8Array,
    more: Omit<BodySource, 'body'> = {},
  ): ParsedBodies[K] | Promise<ParsedBodies[K]> {
    const { json, admission } = this.#options
    const { connection } = this
    const { signal } = this.context
    return json.parse(kind, { ...more, body }, { signal, connection, admission })
  }

  /**
   * Makes the parts of an answer and counts their bytes. A small answer is made at once, a large one with at most one part in a
   * turn of the loop.
   *
   * @param outputs - the tensors of the answer, whose bytes count too if it takes more than one turn.
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
      await this.#options.turns.next()
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

  /** Gives back the bytes of the answer, or of its parts so far, once they are sent. */
  releaseAnswer(): void {
    this.#ticket?.release(this.#answerBytes)
    this.#answerBytes = 0
  }

  /**
   * Counts the bytes of the whole answer, in place of its parts, and gives back the place in work.
   *
   * @throws ServeError OVERLOADED
   */
  holdAnswer(bytes: number): void {
    if (this.#ended !== undefined) throw this.#ended
    this.releaseAnswer()
    this.#chargeAnswer(bytes)
    this.#ticket?.leave()
  }

  /** Says whether a part of the answer waits for the client, or the client has taken it. */
  offer(isWaiting: boolean): void {
    this.#ticket?.waitForClient(isWaiting ? true : undefined)
  }

  /** Bytes that have moved, for the admission: of the body until it is complete, then of the answer. */
  get movedBytes(): number {
    const { isWhole, socket } = this.#options.exchange
    return isWhole ? takenBytes(socket) : socket.bytesRead
  }

  /** Ends a call that waits for its client, because others need its bytes. */
  endWaiting(error: ServeError): void {
    this.#ended = error
    if (this.#options.exchange.hasAnswered) this.#options.exchange.destroy()
    else this.#options.scope.cancel(error)
  }

  #chargeAnswer(bytes: number): void {
    this.#ticket?.charge(bytes)
    this.#answerBytes += bytes
  }

  /**
   * Gives back the place and all bytes, once the answer is out or the client has left.
   *
   * @param error - why the answer is not out.
   */
  close(error?: ServeError): void {
    this.#ticket?.close()
    const { observed } = this.#options
    if (error === undefined) observed?.ended()
    else observed?.left(this.context.deadlineAt, error)
  }
}

/**
 * Reads the header `tutti-timeout-ms`.
 *
 * @returns undefined without the header.
 * @throws ServeError INVALID_PARAMETER unless the header is a whole number of milliseconds above 0.
 */
export function parseTimeout(exchange: Exchange): number | undefined {
  const written = headerOf(exchange, TIMEOUT_HEADER)
  if (written === undefined) return undefined
  const timeoutMs = Number(written)
  if (/^\d+$/.test(written) && timeoutMs > 0 && Number.isSafeInteger(timeoutMs)) return timeoutMs
  throw new ServeError(
    'INVALID_PARAMETER',
    `header ${TIMEOUT_HEADER}: got '${written}', want a whole number of milliseconds above 0`,
    { details: { field: TIMEOUT_HEADER } },
  )
}

function headerOf({ head }: Exchange, name: string): string | undefined {
  const value = head.headers[name]
  return Array.isArray(value) ? value[0] : value
}
