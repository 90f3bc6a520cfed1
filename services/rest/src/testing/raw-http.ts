import { connect } from 'node:net'

export type RawClient = Awaited<ReturnType<typeof openRaw>>

/**
 * Opens a client that sends any bytes, even those that HTTP libraries refuse to send. An error of its connection is like its
 * end.
 */
export async function openRaw(port: number) {
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
    write: (bytes: string | Uint8Array): void => void socket.write(bytes),
    /** Everything that came until the server closed the connection. */
    all,
    soFar: () => text,
    /** Resolves with what has come so far, once it holds `mark`. */
    until: (mark: string) =>
      new Promise<string>((resolve) => {
        if (text.includes(mark)) resolve(text)
        else waiters.push({ mark, resolve })
      }),
  }
}
