import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { ServeError } from '@tutti/errors'
import { encodeInferResponseFrame } from '@tutti/protocol'
import type { InferResponse } from '../inference-backend.ts'
import { answerError } from './answer-error.ts'
import type { LiveCall } from './live-call.ts'
import type { GrpcLog } from './log-events.ts'
import { UnaryMessage } from './unary-message.ts'

const CONTENT_TYPES = new Set(['application/grpc', 'application/grpc+proto'])

/** As a list of names and values, which Node takes without copying and sorting them first. */
const ANSWER_HEADERS = [
  ':status',
  '200',
  'content-type',
  'application/grpc+proto',
  'grpc-accept-encoding',
  'identity,deflate,gzip',
] as const

const ANSWER_OPTIONS = { waitForTrailers: true, sendDate: false } as const

const TRAILERS = { 'grpc-status': '0' } as const

export interface DirectInferOptions {
  /** Path of ModelInfer. */
  readonly path: string
  readonly answer: (message: Buffer, live: LiveCall) => Promise<InferResponse>
  readonly log: GrpcLog
}

/**
 * ModelInfer on the HTTP/2 stream itself: of a small request grpc-js takes more time than everything else together. It
 * keeps what is rare: every other method, and requests that are compressed or not plain gRPC.
 */
export class DirectInfer {
  readonly #o: DirectInferOptions

  constructor(o: DirectInferOptions) {
    this.#o = o
  }

  /** True for a call that `serve` can answer. */
  takes(headers: IncomingHttpHeaders): boolean {
    if (headers[':path'] !== this.#o.path || headers[':method'] !== 'POST') return false
    const encoding = headers['grpc-encoding']
    if (encoding !== undefined && encoding !== 'identity') return false
    return CONTENT_TYPES.has(headers['content-type'] ?? '')
  }

  /** Reads the one message of the call and answers it. */
  serve(stream: ServerHttp2Stream, live: LiveCall): void {
    const message = new UnaryMessage()
    // What goes wrong below us closes the stream, and `live` hears of that.
    stream.on('error', ignoreStreamError)
    stream.on('data', (piece: Buffer) => {
      live.onData(piece)
      if (!stream.headersSent) message.add(piece)
    })
    // Once, but `once` wraps its listener, and takes it off again.
    stream.on('end', () => {
      // A reset ends the stream too, and an overload or a deadline may have been answered.
      if (stream.aborted || stream.headersSent || live.isClosed) return
      void this.#answer(stream, live, message)
    })
  }

  async #answer(stream: ServerHttp2Stream, live: LiveCall, message: UnaryMessage): Promise<void> {
    try {
      const response = await this.#o.answer(message.end(), live)
      live.answered()
      // The deadline may have been answered, or the client gone, meanwhile.
      if (stream.headersSent || stream.destroyed || stream.closed) return
      const frame = encodeInferResponseFrame(response)
      live.holdAnswer(frame.byteLength)
      stream.respond(ANSWER_HEADERS, ANSWER_OPTIONS)
      stream.on('wantTrailers', sendTrailers)
      stream.end(frame)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      this.#o.log.callFailed(this.#o.path, error)
      live.answered()
      answerError(stream, error)
    }
  }
}

function sendTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(TRAILERS)
}

function ignoreStreamError(): void {
  // See serve().
}
