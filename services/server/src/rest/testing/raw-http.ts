import { connect, type Socket } from 'node:net'

/** A client that sends bytes as it is told, for what HTTP libraries refuse to send. */
export interface RawClient {
  readonly socket: Socket
  write(text: string | Uint8Array): void
  /** Everything that came until the server closed the connection. */
  readonly all: Promise<string>
  soFar(): string
  /** What has come so far, once it holds `mark`. */
  until(mark: string): Promise<string>
}

/** Opens a connection. Errors of it count as its end. */
export async function openRaw(port: number): Promise<RawClient> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  const waiters: { mark: string; resolve: (text: string) => void }[] = []
  socket.setEncoding('latin1')
  socket.on('data', (chunk) => {
    text += String(chunk)
    for (const waiter of waiters) if (text.includes(waiter.mark)) waiter.resolve(text)
  })
  socket.on('error', () => {
    // A reset is an end like any other here; tests look at what came before it.
  })
  const all = new Promise<string>((resolve) => {
    socket.on('close', () => resolve(text))
  })
  await new Promise<void>((resolve) => {
    socket.once('connect', () => resolve())
    socket.once('close', () => resolve())
  })
  return {
    socket,
    write: (bytes) => socket.write(bytes),
    all,
    soFar: () => text,
    until: (mark) =>
      new Promise((resolve) => {
        if (text.includes(mark)) resolve(text)
        else waiters.push({ mark, resolve })
      }),
  }
}
