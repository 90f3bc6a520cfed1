import type { Transform } from 'node:stream'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { BodyReader, Exchange } from '@tutti/http'
import { type AdmissionTicket, ArrivingBytes } from '@tutti/serving'
import {
  type CompressedEncoding,
  type ContentEncoding,
  createDecoder,
} from '../answers/content-encoding.ts'

export interface ReadBodyOptions {
  /** Bytes of one body, after decompression. */
  readonly maxInputBytes: number
  /** Ticket that is charged with each piece as it arrives, and takes a place with the last one. The caller closes it. */
  readonly ticket: AdmissionTicket
  readonly encoding: ContentEncoding
  readonly signal: CancelSignal
}

/**
 * Reads the whole body of a request, decompressed.
 *
 * @throws ServeError MESSAGE_TOO_LARGE, OVERLOADED, CANCELLED if the client leaves, MALFORMED_MESSAGE if it does not decompress,
 * or the signal's reason.
 */
export function readBody(exchange: Exchange, o: ReadBodyOptions): Promise<Uint8Array> {
  const { encoding, maxInputBytes, signal } = o
  const { bodyBytes = 0 } = exchange.head
  const isAsIs = encoding === 'identity'
  const body = new WholeBody(isAsIs && bodyBytes > 0 ? bodyBytes : undefined, o)
  signal.addEventListener('abort', () => body.fail(signal.reason), { once: true })
  if (signal.aborted) body.fail(signal.reason)
  else if (bodyBytes > maxInputBytes) body.fail(tooLarge(bodyBytes, maxInputBytes))
  else exchange.read(isAsIs ? body : new DecodedBody(exchange, encoding, body))
  return body.whole
}

/** A body that is put together as its pieces come. */
class WholeBody implements BodyReader {
  readonly #options: ReadBodyOptions
  readonly #whole = Promise.withResolvers<Uint8Array>()
  /** Undefined once the promise is settled: what comes later is thrown away. */
  #bytes: ArrivingBytes | undefined
  #got = 0

  constructor(announcedBytes: number | undefined, o: ReadBodyOptions) {
    this.#options = o
    this.#bytes = new ArrivingBytes(announcedBytes)
  }

  get whole(): Promise<Uint8Array> {
    return this.#whole.promise
  }

  data(piece: Uint8Array): void {
    if (this.#bytes === undefined) return
    const { maxInputBytes, ticket } = this.#options
    this.#got += piece.byteLength
    try {
      if (this.#got > maxInputBytes) throw tooLarge(this.#got, maxInputBytes)
      ticket.charge(piece.byteLength)
      this.#bytes.add(piece)
    } catch (error) {
      this.fail(error)
    }
  }

  end(): void {
    if (this.#bytes === undefined) return
    try {
      this.#options.ticket.enter()
    } catch (error) {
      return this.fail(error)
    }
    this.#whole.resolve(this.#bytes.bytes)
    this.#bytes = undefined
  }

  left(): void {
    this.fail(new ServeError('CANCELLED', 'the client went away'))
  }

  fail(error: unknown): void {
    this.#bytes = undefined
    this.#whole.reject(ServeError.from(error))
  }

  get isSettled(): boolean {
    return this.#bytes === undefined
  }
}

/** Decompresses a body. The client is read no faster than that. */
class DecodedBody implements BodyReader {
  readonly #exchange: Exchange
  readonly #body: WholeBody
  readonly #decoder: Transform

  constructor(exchange: Exchange, encoding: CompressedEncoding, body: WholeBody) {
    this.#exchange = exchange
    this.#body = body
    const decoder = (this.#decoder = createDecoder(encoding))
    decoder.on('data', (piece: Uint8Array) => {
      body.data(piece)
      if (body.isSettled) decoder.destroy()
    })
    decoder.on('end', () => body.end())
    decoder.on('drain', () => exchange.resume())
    decoder.on('error', (cause) => {
      const text = `request body is not valid ${encoding} data: ${cause.message}`
      body.fail(new ServeError('MALFORMED_MESSAGE', text, { cause }))
    })
  }

  data(piece: Buffer): void {
    if (this.#body.isSettled) this.#decoder.destroy()
    else if (!this.#decoder.write(Buffer.from(piece))) this.#exchange.pause()
  }

  end(): void {
    this.#decoder.end()
  }

  left(): void {
    this.#body.left()
    this.#decoder.destroy()
  }
}

function tooLarge(got: number, max: number): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `request body of ${got} bytes or more exceeds the maximum allowed value of ${max} bytes. Use --http-max-input-size to increase the limit for inference and loads.`,
  )
}
