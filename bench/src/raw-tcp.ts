import { connect, createServer, type Socket } from 'node:net'

/*
 * The least that two processes can do over one plain socket: a length, and as many bytes into memory that is used again. It shows what
 * the socket costs.
 */

const LENGTH_BYTES = 4

/** Listens, and answers each message with its own bytes. @returns the port. */
export function answerTcp(): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => {
    const send = sender(socket)
    receive(socket, send)
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** Connects. @param take - gets each message; its memory is used again after a turn. @returns sends one. */
export function connectTcp(
  port: number,
  take: (bytes: Uint8Array) => void,
): Promise<(bytes: Uint8Array) => void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  receive(socket, (bytes, release) => {
    take(bytes)
    setImmediate(release)
  })
  return new Promise((resolve) => socket.on('connect', () => resolve(sender(socket))))
}

function sender(socket: Socket): (bytes: Uint8Array, written?: () => void) => void {
  return (bytes, written) => {
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32LE(bytes.byteLength)
    socket.cork()
    socket.write(length)
    socket.write(bytes, written)
    socket.uncork()
  }
}

/** Messages begin and end within pieces as they like. */
function receive(socket: Socket, take: (bytes: Uint8Array, release: () => void) => void): void {
  const pool: Buffer[] = []
  const length = Buffer.alloc(LENGTH_BYTES)
  let lengthFilled = 0
  let into: Buffer | undefined
  let filled = 0
  socket.on('data', (piece) => {
    for (let at = 0; at < piece.byteLength; ) {
      if (into === undefined) {
        const size = piece.copy(length, lengthFilled, at, at + LENGTH_BYTES - lengthFilled)
        at += size
        lengthFilled += size
        if (lengthFilled < LENGTH_BYTES) continue
        lengthFilled = 0
        filled = 0
        const kept = pool.pop()
        const bytes = length.readUInt32LE()
        into = kept?.byteLength === bytes ? kept : Buffer.allocUnsafeSlow(bytes)
      }
      const size = piece.copy(into, filled, at)
      at += size
      filled += size
      if (filled < into.byteLength) continue
      const whole = into
      into = undefined
      take(whole, () => void pool.push(whole))
    }
  })
}
