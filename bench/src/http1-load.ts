import { connect, type Socket } from 'node:net'
import type { LoadResult } from './http2-load.ts'

/** One run of requests over connections that stay open, always one request on each. */
export interface Http1Load {
  readonly port: number
  /** A whole request, see `toHttp1Request`. */
  readonly request: Buffer
  readonly connections: number
  readonly requests: number
}

const END_OF_HEAD = '\r\n\r\n'

/** Makes the bytes of a POST. */
export function toHttp1Request(
  path: string,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: localhost',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.byteLength}`,
  ]
  return Buffer.concat([Buffer.from(lines.join('\r\n') + END_OF_HEAD), body])
}

/**
 * Sends one HTTP/1.1 request over and over. Its bytes are made once, so that the server is measured and not the client. Of the
 * answers it reads status and length.
 *
 * @throws Error if an answer is none of status 200, or has another length than the first one.
 */
export async function http1Load(load: Http1Load): Promise<LoadResult> {
  const sockets = await Promise.all(
    Array.from({ length: load.connections }, () => connected(load.port)),
  )
  try {
    const started = performance.now()
    const latenciesMs = await new Promise<readonly number[]>((resolve, reject) => {
      const run = new Run(load, resolve)
      for (const socket of sockets) run.add(socket, reject)
    })
    const perSecond = load.requests / ((performance.now() - started) / 1000)
    return { perSecond, latenciesMs }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    socket.once('error', reject)
    socket.once('connect', () => resolve(socket))
  })
}

class Run {
  readonly #load: Http1Load
  readonly #resolve: (latenciesMs: readonly number[]) => void
  readonly #latenciesMs: number[] = []
  #begun = 0
  #answerBytes = 0

  constructor(load: Http1Load, resolve: (latenciesMs: readonly number[]) => void) {
    this.#load = load
    this.#resolve = resolve
  }

  add(socket: Socket, reject: (error: Error) => void): void {
    let waiting = Buffer.alloc(0)
    let sentAt = 0
    const sendNext = (): void => {
      sentAt = performance.now()
      this.#next(socket)
    }
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed the connection')))
    socket.on('data', (bytes) => {
      waiting = waiting.byteLength === 0 ? bytes : Buffer.concat([waiting, bytes])
      try {
        if (!this.#isAnswer(waiting)) return
      } catch (error) {
        return reject(error instanceof Error ? error : new Error(String(error)))
      }
      waiting = Buffer.alloc(0)
      this.#latenciesMs.push(performance.now() - sentAt)
      if (this.#latenciesMs.length === this.#load.requests) this.#resolve(this.#latenciesMs)
      else sendNext()
    })
    sendNext()
  }

  #next(socket: Socket): void {
    if (this.#begun === this.#load.requests) return
    this.#begun += 1
    socket.write(this.#load.request)
  }

  /** @returns false if some of it is still to come. */
  #isAnswer(bytes: Buffer): boolean {
    const headEnd = bytes.indexOf(END_OF_HEAD)
    if (headEnd < 0) return false
    const head = bytes.toString('latin1', 0, headEnd)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
    if (!head.startsWith('HTTP/1.1 200 ') || !(length > 0)) {
      throw new Error(`got the answer ${bytes.toString('latin1')}`)
    }
    const got = bytes.byteLength - headEnd - END_OF_HEAD.length
    if (got < length) return false
    this.#answerBytes ||= length
    if (got === this.#answerBytes) return true
    throw new Error(`got an answer of ${got} bytes, want ${this.#answerBytes}`)
  }
}
