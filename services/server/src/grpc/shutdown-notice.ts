import { writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/**
 * A GOAWAY with the highest stream id: a client is to open no more calls, and those on their way are still served.
 *
 * @see RFC 9113, 6.8
 */
const SHUTDOWN_NOTICE = Buffer.from('0000080700000000007fffffff00000000', 'hex')

/**
 * Writes the notice past Node: after `session.goaway`, whatever the id, nghttp2 drops new calls. It goes straight to the
 * descriptor, because Node takes each write of the socket that ends later for one of the session's, and then aborts the process.
 *
 * @returns false if the notice cannot go out now, and nothing of it did: over TLS, behind frames that the client has not read yet, or
 *   on a socket that is closed.
 */
export function writeShutdownNotice(socket: Socket): boolean {
  if (socket instanceof TLSSocket) return false
  const { fd, writeQueueSize } = Object(Reflect.get(socket, '_handle'))
  if (typeof fd !== 'number' || fd < 0 || writeQueueSize !== 0) return false
  try {
    const written = writeSync(fd, SHUTDOWN_NOTICE)
    // What comes behind half a frame would be read as the rest of it.
    if (written < SHUTDOWN_NOTICE.byteLength) socket.destroy()
    return true
  } catch {
    // EAGAIN: its buffer is full. Others: the client is gone, which its session learns by itself.
    return false
  }
}
