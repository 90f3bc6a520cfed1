import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Exchange } from '../exchange.ts'
import type { ConnectionTimes, RequestHandler } from '../http1-connection.ts'
import { Http1Connections } from '../http1-connections.ts'

/** Scope that ends what a test has started: a test, or the run of a property. */
export interface Scope {
  teardown(close: () => unknown): void
}

/** Times that no test reaches. */
export const LONG_TIMES: ConnectionTimes = {
  headersTimeoutMs: 600_000,
  requestTimeoutMs: 600_000,
  keepAliveMs: 600_000,
}

/** A request as its server got it. */
export interface SeenRequest {
  readonly method: string
  readonly target: string
  readonly headers: unknown
  readonly rawHeaders: readonly string[]
  readonly isHttp10: boolean
  body: string
  isWhole: boolean
}

/** Reads the body of a request. @param whole - called with it. */
export function readWhole(exchange: Exchange, whole: (body: string) => void): void {
  let body = ''
  exchange.read({
    data: (piece) => {
      body += piece.toString('latin1')
    },
    end: () => whole(body),
    left: () => {},
  })
}

/** Answers a request with a text. */
export function answerText(exchange: Exchange, text: string, status = 200): void {
  const parts = [Buffer.from(text, 'latin1')]
  exchange.answer({ status, headers: {} }, parts, Buffer.byteLength(text, 'latin1'))
}

/** Answers a request, once it is whole, with its target and its body. */
export function echo(exchange: Exchange): void {
  readWhole(exchange, (body) => answerText(exchange, `${exchange.head.target} ${body}`))
}

/** Makes the handler of a server. */
export function toHandler(request: (exchange: Exchange) => void): RequestHandler {
  return {
    request,
    refusal: ({ status, message }) => ({ status, headers: {}, parts: [Buffer.from(message)] }),
  }
}

/** Starts a server of HTTP/1.1 alone. */
export async function startHttp1(
  scope: Scope,
  request: (exchange: Exchange) => void = echo,
  {
    times = {},
    server = createServer({ noDelay: true }),
  }: {
    readonly times?: Partial<ConnectionTimes>
    readonly server?: Server
  } = {},
) {
  const connections = new Http1Connections(server, toHandler(request), { ...LONG_TIMES, ...times })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.teardown(() => {
    server.close()
    connections.destroy()
  })
  return { port: (server.address() as AddressInfo).port, server, connections }
}

/** Opens a client that sends any bytes. An error of its connection is like its end. */
export async function openClient(port: number, socket: Socket = connect(port, '127.0.0.1')) {
  let text = ''
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
  })
  const all = new Promise<string>((resolve) => socket.once('close', () => resolve(text)))
  await once(socket, 'connect')
  return {
    socket,
    /** All that came, once the connection has ended. */
    all,
    soFar: () => text,
    write: (bytes: string) => void socket.write(bytes, 'latin1'),
    /** Waits for a text to have come `times` times. */
    until: async (mark: string, times = 1) => {
      while (text.split(mark).length <= times) {
        if (socket.closed) throw new Error(`closed before ${mark}: ${text}`)
        await nextTurn()
      }
      return text
    },
  }
}

/** Sends pieces, one after the other, ends, and returns all that came. */
export async function send(port: number, pieces: readonly string[]): Promise<string> {
  const client = await openClient(port)
  for (const piece of pieces) {
    client.write(piece)
    if (pieces.length > 1) await nextTurn()
  }
  client.socket.end()
  return await client.all
}
