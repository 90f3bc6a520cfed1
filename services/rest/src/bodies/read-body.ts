import type { IncomingMessage } from 'node:http'
import { type CancelSignal, ServeError } from '@tutti/errors'
import { type AdmissionTicket, ArrivingBytes } from '@tutti/serving'
import { type ContentEncoding, createDecoder } from '../answers/content-encoding.ts'

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
export function readBody(request: IncomingMessage, o: ReadBodyOptions): Promise<Uint8Array> {
  const { maxInputBytes, ticket, encoding, signal } = o
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const announced = Number(request.headers['content-length'] ?? 0)
  const decoder = createDecoder(encoding)
  const isAnnounced = decoder === undefined && announced > 0
  let body: ArrivingBytes | undefined = new ArrivingBytes(isAnnounced ? announced : undefined)
  let got = 0
  let isSettled = false
  /** Rejects with an error. What comes later is thrown away. */
  const fail = (error: unknown): void => {
    isSettled = true
    body = undefined
    reject(ServeError.from(error))
    if (decoder !== undefined) request.unpipe(decoder).resume()
    decoder?.destroy()
  }
  const keep = (chunk: Buffer): void => {
    if (isSettled || body === undefined) return
    got += chunk.byteLength
    try {
      if (got > maxInputBytes) throw tooLarge(got, maxInputBytes)
      ticket.charge(chunk.byteLength)
      body.add(chunk)
    } catch (error) {
      fail(error)
    }
  }
  const source = decoder ?? request
  source.on('data', keep)
  source.on('end', () => {
    if (body === undefined) return
    try {
      ticket.enter()
    } catch (error) {
      return fail(error)
    }
    resolve(body.bytes)
    isSettled = true
    body = undefined
  })
  const leave = (): void => {
    if (!request.complete) fail(new ServeError('CANCELLED', 'the client went away'))
  }
  request.on('close', leave)
  request.on('error', leave)
  decoder?.on('error', (cause) => {
    const text = `request body is not valid ${encoding} data: ${cause.message}`
    fail(new ServeError('MALFORMED_MESSAGE', text, { cause }))
  })
  if (decoder !== undefined) request.pipe(decoder)
  signal.addEventListener('abort', () => fail(signal.reason), { once: true })
  if (signal.aborted) fail(signal.reason)
  else if (announced > maxInputBytes) fail(tooLarge(announced, maxInputBytes))
  return promise
}

function tooLarge(got: number, max: number): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `request body of ${got} bytes or more exceeds the maximum allowed value of ${max} bytes. Use --http-max-input-size to increase the limit for inference and loads.`,
  )
}
