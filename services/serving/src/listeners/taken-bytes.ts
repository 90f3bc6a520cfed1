import type { Socket } from 'node:net'

/** Figures of Node about the writes of a socket, for which it has no public name. */
interface SocketHandle {
  readonly bytesWritten: number
  /** Bytes of these that the system has not taken. */
  readonly writeQueueSize: number
}

/** Counts the bytes that the system has taken from a socket. Only differences mean something. */
export function takenBytes(socket: Socket): number {
  const handle = handleOf(socket)
  return handle === undefined ? 0 : handle.bytesWritten - handle.writeQueueSize
}

/** Counts the bytes that were given to a socket and that the system has not taken yet. */
export function unsentBytes(socket: Socket): number {
  return handleOf(socket)?.writeQueueSize ?? 0
}

function handleOf(socket: Socket): SocketHandle | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion, no-underscore-dangle -- Node's own timeouts of sockets read it; absent once it is closed
  return (socket as { readonly _handle?: SocketHandle | null })._handle ?? undefined
}
