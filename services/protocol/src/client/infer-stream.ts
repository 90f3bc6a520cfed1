import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js'
import { ServeError } from '@tutti/errors'
import { decodeStreamResponse, encodeInferRequest } from '../infer/client-codec.ts'
import type { OutgoingRequest, StreamResponse } from '../infer/infer-message.ts'
import { fromGrpcStatus } from '../status/grpc-status.ts'

/** The client's end of one ModelStreamInfer. */
export class InferStream {
  readonly #call: ClientDuplexStream<Buffer, Buffer>

  constructor(call: ClientDuplexStream<Buffer, Buffer>, signal?: AbortSignal) {
    this.#call = call
    if (signal === undefined) return
    const cancel = (): void => this.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    // The signal may live for longer than many streams.
    call.once('status', () => signal.removeEventListener('abort', cancel))
    if (signal.aborted) this.cancel()
  }

  /** Sends a request. Resolves when the connection has taken it. @throws ServeError if the stream fails before that. */
  send(request: OutgoingRequest): Promise<void> {
    return this.sendEncoded(encodeInferRequest(request))
  }

  /** Sends an encoded request, as `send` does. @param request - made by `encodeInferRequest`. */
  sendEncoded(request: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#call.write(request, (error: Error | null | undefined) => {
        if (error === null || error === undefined) resolve()
        else reject(ServeError.from(error))
      })
    })
  }

  /** Ends the requests. The server finishes those that it has. */
  end(): void {
    this.#call.end()
  }

  cancel(): void {
    this.#call.cancel()
  }

  /** Yields all messages until the server ends the stream. @throws ServeError if the stream ends with an error. */
  async *responses(): AsyncGenerator<StreamResponse, void, undefined> {
    try {
      const messages: AsyncIterable<unknown> = this.#call
      for await (const message of messages) {
        if (Buffer.isBuffer(message)) yield decodeStreamResponse(message)
      }
    } catch (error) {
      throw isServiceError(error) ? fromGrpcStatus(error) : ServeError.from(error)
    }
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return (
    error instanceof Error &&
    'code' in error &&
    'details' in error &&
    !(error instanceof ServeError)
  )
}
