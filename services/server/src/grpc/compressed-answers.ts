import type {
  OutgoingHttpHeaders,
  ServerHttp2Stream,
  ServerStreamResponseOptions,
} from 'node:http2'
import { promisify } from 'node:util'
import { deflate, gzip } from 'node:zlib'
import { FRAME_HEADER_BYTES } from './message-reader.ts'
import type { Handler } from './method.ts'

/** As tritonserver calls them. */
export const COMPRESSION_LEVELS = ['none', 'low', 'medium', 'high'] as const
export type CompressionLevel = (typeof COMPRESSION_LEVELS)[number]

const ZLIB_LEVELS = { low: 1, medium: 6, high: 9 } as const
const ENCODERS = new Map([
  ['gzip', promisify(gzip)],
  ['deflate', promisify(deflate)],
])
/** A message that fits one packet arrives no earlier if it is smaller. */
const LEAST_BYTES = 1024

/** The handler with compressed answers, for clients that accept one of the encodings. */
export function compressAnswers(serve: Handler, level: CompressionLevel): Handler {
  if (level === 'none') return serve
  return (call, definition) => {
    const accepted = String(call.headers['grpc-accept-encoding'] ?? '').split(/\s*,\s*/)
    const encoding = [...ENCODERS.keys()].find((name) => accepted.includes(name))
    if (encoding !== undefined) compressStream(call.stream, encoding, ZLIB_LEVELS[level])
    serve(call, definition)
  }
}

type Taken = (error?: Error | null) => void

/**
 * Puts the compression between a call and its stream: what the call writes, whole frames each, goes on in its order once it is
 * compressed, which another thread does. Calls without compression are not touched by this.
 */
function compressStream(stream: ServerHttp2Stream, encoding: string, level: number): void {
  const respond = stream.respond.bind(stream)
  const write = stream.write.bind(stream)
  const end = stream.end.bind(stream)
  let last: Promise<void> = Promise.resolve()
  const compress = (whole: Buffer) => compressFrame(whole, encoding, level)
  const inTurn = (frame: Buffer | undefined, send: (compressed: Buffer | undefined) => void) => {
    const take = async (): Promise<void> => {
      const isSmall = frame === undefined || frame.byteLength < LEAST_BYTES
      send(isSmall ? frame : await whenFree(stream, frame, compress))
    }
    last = last.then(take)
  }
  Object.assign(stream, {
    respond: (
      headers: OutgoingHttpHeaders | readonly string[],
      options?: ServerStreamResponseOptions,
    ): void => {
      if (!Array.isArray(headers)) return respond(headers, options)
      respond([...headers, 'grpc-encoding', encoding], options)
    },
    write: (frame: Buffer, taken: Taken): void =>
      inTurn(frame, (compressed) => void write(compressed, taken)),
    end: (frame?: Buffer): void => inTurn(frame, (compressed) => void end(compressed)),
  })
}

/** Messages that are compressed at the same time, of all calls: Node has as many threads for it. */
const MAX_COMPRESSIONS = 4
let compressions = 0
const waiting: (() => void)[] = []

/**
 * Compresses a frame as soon as a thread is free. Once its call has ended, the frame is not compressed: its bytes do not count as in
 * flight any more, so it must be dropped soon.
 */
async function whenFree(
  stream: ServerHttp2Stream,
  frame: Buffer,
  compress: (frame: Buffer) => Promise<Buffer>,
): Promise<Buffer> {
  if (compressions < MAX_COMPRESSIONS) compressions += 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
  const compressed = stream.destroyed ? frame : await compress(frame)
  const next = waiting.shift()
  if (next === undefined) compressions -= 1
  else next()
  return compressed
}

/** A frame with the message compressed, or as it is if it would not become smaller. Never rejects. */
async function compressFrame(frame: Buffer, encoding: string, level: number): Promise<Buffer> {
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
