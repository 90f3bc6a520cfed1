import type { Socket } from 'node:net'
import { readShared } from '../shared-reads.ts'
import { type Http2Bounds, Http2Connection } from './http2-connection.ts'
import type { ByteSink } from './sender.ts'
import type { ServerStream } from './stream.ts'

/** For the last frames of a connection on their way to its client, and for the client to say goodbye. */
const LINGER_MS = 500
/** From the connection, and over TLS from the end of its handshake, to the client's settings. */
const BEGIN_MS = 10_000

/** Handler for the events of a connection, as `ConnectionHandler`. It gets the socket beside each request. */
export interface SocketHandler {
  readonly stream: (stream: ServerStream, socket: Socket) => void
  readonly pinged?: () => void
}

/**
 * Serves HTTP/2 on a socket that has just been accepted, with or without TLS. The connection owns the socket from now on. Others
 * may only destroy it.
 */
export function openHttp2Connection(
  socket: Socket,
  o: Http2Bounds & { readonly handler: SocketHandler },
): Http2Connection {
  const connection = new Http2Connection({
    ...o,
    handler: { ...o.handler, stream: (stream) => o.handler.stream(stream, socket) },
    sink: toSink(socket),
    now: () => performance.now(),
  })
  const begin = setTimeout(() => {
    if (!connection.hasBegun) connection.destroy()
  }, BEGIN_MS).unref()
  // The close comes after it.
  socket.on('error', () => {})
  readShared(socket, (chunk) => connection.receive(chunk))
  socket.once('close', () => {
    clearTimeout(begin)
    connection.close()
  })
  return connection
}

function toSink(socket: Socket): ByteSink {
  let timer: NodeJS.Timeout | undefined
  const endSoon = (): void => {
    timer ??= setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
  socket.once('close', () => clearTimeout(timer))
  return {
    write: (pieces, done) => {
      const last = pieces.at(-1)
      if (last === undefined || socket.destroyed) return
      const taken = (error?: Error | null): void => {
        if (error === null || error === undefined) done()
      }
      // One piece needs no cork.
      if (pieces.length > 1) socket.cork()
      for (const piece of pieces.slice(0, -1)) socket.write(piece)
      socket.write(last, taken)
      if (pieces.length > 1) socket.uncork()
    },
    end: () => {
      socket.end()
      endSoon()
    },
    endSoon,
    destroy: () => void socket.destroy(),
  }
}
