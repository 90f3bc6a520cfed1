import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { encodeFields } from '../hpack/encoder.ts'
import type { Http2Bounds } from '../http2-connection.ts'
import { openHttp2Connection } from '../open-http2-connection.ts'
import type { ServerStream } from '../stream.ts'

export const TEST_BOUNDS: Http2Bounds = {
  windowBytes: 2 ** 20,
  maxConcurrentStreams: 100,
  maxHeaderListBytes: 2 ** 16,
  resetBurst: 1000,
  resetsPerSecond: 1000,
}

const HEADERS = encodeFields([[':status', '200']])
const TRAILERS = encodeFields([['bytes', 'all']])

/** Answers each request, once it is whole, with its own body and the word hello. */
export function echo(stream: ServerStream): void {
  const pieces: Buffer[] = []
  stream.handler = {
    data: (piece) => pieces.push(Buffer.from(piece)),
    ended: () => {
      stream.respond(HEADERS)
      for (const piece of [...pieces, Buffer.from('hello')]) stream.write(piece)
      stream.end(TRAILERS)
    },
    closed: () => {},
  }
}

/** Starts a server of nothing but HTTP/2. @param scope - what closes it again when the test ends. */
export async function startPlainServer(
  scope: { teardown(close: () => void): void },
  o: Partial<Http2Bounds> & { readonly serve?: (stream: ServerStream) => void } = {},
) {
  const { serve = echo, ...bounds } = o
  const connections: ReturnType<typeof openHttp2Connection>[] = []
  const server = createServer({ noDelay: true }, (socket) => {
    const handler = { stream: serve }
    connections.push(openHttp2Connection(socket, { ...TEST_BOUNDS, ...bounds, handler }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.teardown(() => {
    server.close()
    for (const connection of connections) connection.destroy()
  })
  return { port: (server.address() as AddressInfo).port, connections }
}
