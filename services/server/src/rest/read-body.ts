import type { IncomingMessage } from 'node:http'
import type { Clock } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { AdmissionTicket } from '../admission.ts'
import { type ContentEncoding, createDecoder } from './content-encoding.ts'

export interface BodyLimits {
  /** Of one body, after decompression. */
  readonly maxInputBytes: number
  /** From the first byte of the request to its last. */
  readonly bodyTimeoutMs: number
  /** Between two pieces of the body. */
  readonly bodyIdleMs: number
}

export interface BodyReaderOptions extends BodyLimits {
  /** Charged with every piece as it arrives; the caller closes it. */
  readonly ticket: AdmissionTicket
  readonly clock: Clock
  readonly encoding: ContentEncoding
  readonly signal: CancelSignal
}

/**
 * Reads a request's body whole, under every bound.
 *
 * @throws ServeError MESSAGE_TOO_LARGE, OVERLOADED, DEADLINE_EXCEEDED for a body that comes too slowly, CANCELLED if the
 * client leaves, MALFORMED_MESSAGE if it does not decompress.
 */
export function readBody(request: IncomingMessage, o: BodyReaderOptions): Promise<Uint8Array> {
  return new BodyReader(request, o).read()
}

class BodyReader {
  readonly #request: IncomingMessage
  readonly #o: BodyReaderOptions
  readonly #chunks: Uint8Array[] = []
  readonly #done = Promise.withResolvers<Uint8Array>()
  readonly #onAbort = (): void => this.#fail(ServeError.from(this.#o.signal.reason))
  #got = 0
  #isSettled = false
  #stopTimer: (() => void) | undefined
  #stopIdle: (() => void) | undefined

  constructor(request: IncomingMessage, o: BodyReaderOptions) {
    this.#request = request
    this.#o = o
  }

  read(): Promise<Uint8Array> {
    const { bodyTimeoutMs, clock, encoding, maxInputBytes, signal } = this.#o
    const announced = Number(this.#request.headers['content-length'] ?? 0)
    signal.addEventListener('abort', this.#onAbort, { once: true })
    if (signal.aborted) this.#onAbort()
    else if (announced > maxInputBytes) this.#fail(tooLarge(announced, maxInputBytes))
    else {
      this.#stopTimer = clock.setTimer(bodyTimeoutMs, () =>
        this.#fail(this.#tooSlow(bodyTimeoutMs)),
      )
      this.#listen(encoding)
    }
    return this.#done.promise
  }

  #listen(encoding: ContentEncoding): void {
    const request = this.#request
    const decoder = createDecoder(encoding)
    const source = decoder ?? request
    this.#watchIdle()
    request.on('data', () => this.#watchIdle())
    request.on('error', () => this.#fail(clientLeft()))
    request.on('close', () => {
      if (!request.complete) this.#fail(clientLeft())
    })
    source.on('data', (chunk: Buffer) => this.#keep(chunk))
    source.on('end', () => this.#finish())
    if (decoder === undefined) return
    decoder.on('error', (cause) => {
      this.#fail(
        new ServeError(
          'MALFORMED_MESSAGE',
          `request body is not valid ${encoding} data: ${cause.message}`,
          {
            cause,
          },
        ),
      )
    })
    request.pipe(decoder)
    // A decoder that nobody reads any more would hold its buffers until the connection ends.
    void this.#done.promise
      .catch(() => request.unpipe(decoder).resume())
      .finally(() => decoder.destroy())
  }

  #keep(chunk: Buffer): void {
    if (this.#isSettled) return
    const size = this.#got + chunk.byteLength
    if (size > this.#o.maxInputBytes) {
      this.#fail(tooLarge(size, this.#o.maxInputBytes))
      return
    }
    try {
      this.#o.ticket.charge(chunk.byteLength)
    } catch (error) {
      this.#fail(ServeError.from(error))
      return
    }
    this.#got = size
    this.#chunks.push(chunk)
  }

  #finish(): void {
    if (!this.#settle()) return
    const [only] = this.#chunks
    const bytes = this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks)
    this.#chunks.length = 0
    this.#done.resolve(bytes)
  }

  #fail(error: ServeError): void {
    if (!this.#settle()) return
    this.#chunks.length = 0
    this.#done.reject(error)
  }

  #settle(): boolean {
    if (this.#isSettled) return false
    this.#isSettled = true
    this.#stopTimer?.()
    this.#stopIdle?.()
    this.#o.signal.removeEventListener('abort', this.#onAbort)
    return true
  }

  #watchIdle(): void {
    this.#stopIdle?.()
    if (this.#isSettled) return
    const { bodyIdleMs, clock } = this.#o
    this.#stopIdle = clock.setTimer(bodyIdleMs, () => this.#fail(this.#tooSlow(bodyIdleMs)))
  }

  #tooSlow(limitMs: number): ServeError {
    const announced = this.#request.headers['content-length'] ?? 'an unknown number of'
    return new ServeError(
      'DEADLINE_EXCEEDED',
      `request body came too slowly: got ${this.#got} of ${announced} bytes, nothing more within ${limitMs} ms`,
    )
  }
}

function tooLarge(got: number, max: number): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `request body of ${got} bytes or more exceeds the maximum allowed value of ${max} bytes. Use --http-max-input-size to increase the limit.`,
  )
}

function clientLeft(): ServeError {
  return new ServeError('CANCELLED', 'the client went away')
}
