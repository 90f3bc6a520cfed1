import { promisify } from 'node:util'
import { deflate, gzip } from 'node:zlib'
import type { FieldBlock, ServerStream } from '@tutti/http'
import { toCompressedHeaders } from '../call/answer-headers.ts'
import { FRAME_HEADER_BYTES } from '../call/message-reader.ts'
import type { AnswerStream } from '../call/server-call.ts'
import type { Handler } from './method.ts'

/** Names of the compression levels, as in tritonserver. */
export const COMPRESSION_LEVELS = ['none', 'low', 'medium', 'high'] as const
export type CompressionLevel = (typeof COMPRESSION_LEVELS)[number]

const ZLIB_LEVELS = { low: 1, medium: 6, high: 9 } as const
const ENCODERS = new Map([
  ['gzip', promisify(gzip)],
  ['deflate', promisify(deflate)],
])
/** A message that fits one packet arrives no earlier if it is smaller. */
const LEAST_BYTES = 1024

/**
 * Wraps a handler so that clients that accept gzip or deflate get compressed answers.
 *
 * @returns `serve` itself for the level none.
 */
export function compressAnswers(serve: Handler, level: CompressionLevel): Handler {
  if (level === 'none') return serve
  return (call, definition) => {
    // Not split at a pattern with blanks before the comma: it would look at each of many blanks for a comma behind all others.
    const listed = (call.headers['grpc-accept-encoding'] ?? '').split(',')
    const accepted = listed.map((name) => name.trim())
    const encoding = [...ENCODERS.keys()].find((name) => accepted.includes(name))
    if (encoding !== undefined) {
      call.answer = new CompressedAnswer(call.stream, encoding, ZLIB_LEVELS[level])
    }
    serve(call, definition)
  }
}

/**
 * Stands between a call and its stream: what the call writes, whole frames each, goes on in its order once it is compressed,
 * which another thread does.
 */
class CompressedAnswer implements AnswerStream {
  readonly #stream: ServerStream
  readonly #encoding: string
  readonly #level: number
  #last: Promise<void> = Promise.resolve()

  constructor(stream: ServerStream, encoding: string, level: number) {
    this.#stream = stream
    this.#encoding = encoding
    this.#level = level
  }

  respond(): void {
    this.#stream.respond(toCompressedHeaders(this.#encoding))
  }

  write(frame: Uint8Array, taken?: () => void): void {
    const compress = () => compressFrame(frame, this.#encoding, this.#level)
    const isSmall = frame.byteLength < LEAST_BYTES
    this.#inTurn(async () => {
      this.#stream.write(isSmall ? frame : await whenFree(this.#stream, frame, compress), taken)
    })
  }

  end(trailers: FieldBlock): void {
    this.#inTurn(() => this.#stream.end(trailers))
  }

  #inTurn(send: () => void | Promise<void>): void {
    this.#last = this.#last.then(send)
  }
}

/** Messages that are compressed at the same time, of all calls: Node has as many threads for it. */
const MAX_COMPRESSIONS = 4
let compressions = 0
const waiting: (() => void)[] = []

/**
 * Compresses a frame as soon as a thread is free. Once its call has ended, the frame is not compressed: its bytes no longer
 * count as in flight, so it must be dropped soon.
 */
async function whenFree(
  stream: ServerStream,
  frame: Uint8Array,
  compress: () => Promise<Uint8Array>,
): Promise<Uint8Array> {
  if (compressions < MAX_COMPRESSIONS) compressions += 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
  const compressed = stream.isOver ? frame : await compress()
  const next = waiting.shift()
  if (next === undefined) compressions -= 1
  else next()
  return compressed
}

/** A frame with the message compressed, or as it is if it would not become smaller. Never rejects. */
async function compressFrame(
  frame: Uint8Array,
  encoding: string,
  level: number,
): Promise<Uint8Array> {
  const encode = ENCODERS.get(encoding)
  const message = await encode?.(frame.subarray(FRAME_HEADER_BYTES), { level }).catch(
    () => undefined,
  )
  if (message === undefined || message.byteLength + FRAME_HEADER_BYTES >= frame.byteLength)
    return frame
  const header = Buffer.alloc(FRAME_HEADER_BYTES, 1)
  header.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([header, message])
}
