import { connect, type Socket } from 'node:net'
import {
  type Frame,
  FrameReader,
  frame,
  Kind,
  requestHeaders,
  settings,
  windowUpdate,
} from './http2-frames.ts'

/** One run of requests over one connection, always `inFlight` of them open. */
export interface LoadRequest {
  readonly port: number
  readonly path: string
  /** One gRPC message with its frame header. */
  readonly body: Buffer
  readonly inFlight: number
  readonly requests: number
}

/** The rate and the latencies of a run. */
export interface LoadResult {
  readonly perSecond: number
  /** From the first byte sent to the last one read, of every request, in no order. */
  readonly latenciesMs: readonly number[]
}

const MAX_FRAME = 16_384
const GRPC_HEADER_BYTES = 5
/** Bytes that one side may send until the other side says otherwise. */
const FIRST_WINDOW = 65_535
const OUR_WINDOW = 2 ** 31 - 1
const END_STREAM = 1
const ACK = 1

/** Puts gRPC's frame header before a message: no compression, length in four bytes. */
export function toGrpcFrame(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(GRPC_HEADER_BYTES + message.byteLength)
  bytes.writeUInt32BE(message.byteLength, 1)
  bytes.set(message, GRPC_HEADER_BYTES)
  return bytes
}

/**
 * Sends one gRPC request over and over. Its HTTP/2 frames are made once, which costs a tenth of node:http2, so that the
 * server is measured and not the client. Of the answers it reads only the lengths.
 *
 * @throws Error if an answer has another length than the first one or none at all, as a refused request has.
 */
export async function http2Load(load: LoadRequest): Promise<LoadResult> {
  const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true })
  try {
    const started = performance.now()
    const latenciesMs = await new Promise<readonly number[]>((resolve, reject) => {
      socket.once('error', reject)
      socket.once('close', () => reject(new Error('the server closed the connection')))
      const run = new Run(socket, load, resolve)
      socket.on('data', (bytes) => {
        try {
          run.read(bytes)
        } catch (error) {
          reject(error)
        }
      })
    })
    return { perSecond: load.requests / ((performance.now() - started) / 1000), latenciesMs }
  } finally {
    socket.destroy()
  }
}

/** A request on its way. */
interface Stream {
  readonly startedMs: number
  sent: number
  window: number
  received: number
}

class Run {
  readonly #socket: Socket
  readonly #load: LoadRequest
  readonly #resolve: (latenciesMs: readonly number[]) => void
  readonly #headers: Buffer
  readonly #reader = new FrameReader()
  readonly #streams = new Map<number, Stream>()
  readonly #latenciesMs: number[] = []
  #begun = 0
  #window = FIRST_WINDOW
  #streamWindow = FIRST_WINDOW
  #unannounced = 0
  #answerBytes = 0
  #greeted = false

  constructor(
    socket: Socket,
    load: LoadRequest,
    resolve: (latenciesMs: readonly number[]) => void,
  ) {
    this.#socket = socket
    this.#load = load
    this.#resolve = resolve
    this.#headers = requestHeaders(load.path)
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(settings(OUR_WINDOW))
    socket.write(windowUpdate(0, OUR_WINDOW - FIRST_WINDOW))
  }

  /** One write for all that the bytes give reason to. */
  read(bytes: Buffer): void {
    this.#socket.cork()
    for (const one of this.#reader.read(bytes)) this.#take(one)
    this.#socket.uncork()
  }

  #take(one: Frame): void {
    const stream = this.#streams.get(one.stream)
    if (one.kind === Kind.settings) this.#greet(one)
    else if (one.kind === Kind.ping && (one.flags & ACK) === 0) {
      this.#socket.write(frame(Kind.ping, ACK, 0, one.payload))
    } else if (one.kind === Kind.windowUpdate) this.#widen(one.payload.readUInt32BE(0), stream, one)
    else if (one.kind === Kind.reset || one.kind === Kind.goAway) {
      throw new Error(`the server ended stream ${one.stream}: ${one.payload.toString('hex')}`)
    } else if (one.kind === Kind.data) this.#receive(one.payload.byteLength, stream)
    if (stream === undefined || (one.flags & END_STREAM) === 0) return
    if (one.kind === Kind.data || one.kind === Kind.headers) this.#ended(one.stream, stream)
  }

  #greet({ flags, payload }: Frame): void {
    if ((flags & ACK) !== 0) return
    for (let at = 0; at + 6 <= payload.byteLength; at += 6) {
      const [id, value] = [payload.readUInt16BE(at), payload.readUInt32BE(at + 2)]
      if (id === 3 && value < this.#load.inFlight) {
        throw new Error(`the server takes ${value} streams, want ${this.#load.inFlight}`)
      }
      if (id === 4) {
        for (const stream of this.#streams.values()) stream.window += value - this.#streamWindow
        this.#streamWindow = value
      }
    }
    this.#socket.write(frame(Kind.settings, ACK, 0))
    if (!this.#greeted) this.#start()
    this.#greeted = true
  }

  #start(): void {
    const first = Math.min(this.#load.inFlight, this.#load.requests)
    for (let i = 0; i < first; i += 1) this.#next()
  }

  #next(): void {
    const id = this.#begun * 2 + 1
    const stream = {
      startedMs: performance.now(),
      sent: 0,
      window: this.#streamWindow,
      received: 0,
    }
    this.#begun += 1
    this.#streams.set(id, stream)
    this.#socket.write(frame(Kind.headers, 4, id, this.#headers))
    this.#send(id, stream)
  }

  /** As much of the body as both windows let through. */
  #send(id: number, stream: Stream): void {
    const { body } = this.#load
    while (stream.sent < body.byteLength) {
      const left = body.byteLength - stream.sent
      const bytes = Math.min(left, MAX_FRAME, stream.window, this.#window)
      if (bytes <= 0) return
      const part = body.subarray(stream.sent, stream.sent + bytes)
      this.#socket.write(frame(Kind.data, bytes === left ? END_STREAM : 0, id, part))
      stream.sent += bytes
      stream.window -= bytes
      this.#window -= bytes
    }
  }

  #widen(bytes: number, stream: Stream | undefined, { stream: id }: Frame): void {
    if (id === 0) {
      this.#window += bytes
      for (const [waiting, its] of this.#streams) this.#send(waiting, its)
    } else if (stream !== undefined) {
      stream.window += bytes
      this.#send(id, stream)
    }
  }

  #receive(bytes: number, stream: Stream | undefined): void {
    if (stream !== undefined) stream.received += bytes
    this.#unannounced += bytes
    if (this.#unannounced < OUR_WINDOW / 2) return
    this.#socket.write(windowUpdate(0, this.#unannounced))
    this.#unannounced = 0
  }

  #ended(id: number, stream: Stream): void {
    this.#streams.delete(id)
    if (this.#answerBytes === 0) this.#answerBytes = stream.received
    if (stream.received === 0 || stream.received !== this.#answerBytes) {
      throw new Error(
        `got an answer of ${stream.received} bytes, want ${this.#answerBytes || 'some'}`,
      )
    }
    this.#latenciesMs.push(performance.now() - stream.startedMs)
    if (this.#latenciesMs.length === this.#load.requests) this.#resolve(this.#latenciesMs)
    else if (this.#begun < this.#load.requests) this.#next()
  }
}
