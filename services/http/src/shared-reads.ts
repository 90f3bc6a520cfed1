import type { Socket } from 'node:net'

/** Bytes that are read at once at most. */
const READ_BYTES = 2 ** 16

/** The memory of all sockets: what one reads is used up before another reads. */
let shared: Buffer | undefined

/**
 * Reads a socket into one buffer that all sockets share. Otherwise libuv allocates 64 KiB for each read. V8 counts them as its
 * own and collects garbage for little else.
 *
 * `node:net` offers such reads as `onread`, but only to clients. This sets the same fields on an accepted socket. If a later Node
 * keeps them elsewhere, the socket reads as any other.
 *
 * @param take - gets the bytes: a view that is valid during the call.
 */
export function readShared(socket: Socket, take: (bytes: Buffer) => void): void {
  // Over TLS some may have come with the end of the handshake. Without a listener `end` would not come either.
  for (let had = readNow(socket); had !== undefined; had = readNow(socket)) take(had)
  socket.on('data', take)
  const handle: unknown = Reflect.get(socket, '_handle')
  const bufferKey = symbolOf(socket, 'kBuffer')
  const callbackKey = symbolOf(socket, 'kBufferCb')
  if (bufferKey === undefined || callbackKey === undefined || !canReadInto(handle)) return
  const buffer = (shared ??= Buffer.allocUnsafeSlow(READ_BYTES))
  Reflect.set(socket, bufferKey, buffer)
  Reflect.set(socket, callbackKey, (size: number): true => {
    take(buffer.subarray(0, size))
    return true
  })
  handle.useUserBuffer(buffer)
}

function readNow(socket: Socket): Buffer | undefined {
  const bytes: unknown = socket.read()
  return Buffer.isBuffer(bytes) ? bytes : undefined
}

function symbolOf(socket: Socket, name: string): symbol | undefined {
  return Object.getOwnPropertySymbols(socket).find(({ description }) => description === name)
}

/** The handle that `node:net` has below a socket. */
interface Handle {
  useUserBuffer(buffer: Uint8Array): void
}

function canReadInto(handle: unknown): handle is Handle {
  return typeof handle === 'object' && handle !== null && 'useUserBuffer' in handle
}
