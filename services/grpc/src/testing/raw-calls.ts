import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import type { Test } from 'tap'

export const SERVICE = '/inference.GRPCInferenceService'

/** Frames a message as gRPC does: without flags, with its length. */
export function frame(message: Buffer): Buffer {
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([header, message])
}

/** Connects and waits for the server's settings. The end of the test closes the connection. */
export async function connectRaw(t: Test, address: string): Promise<ClientHttp2Session> {
  const session = connect(`http://${address}`)
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  await once(session, 'remoteSettings')
  return session
}

/** Begins a call of a method, and leaves the rest to the test. */
export function open(
  session: ClientHttp2Session,
  method: string,
  headers: Readonly<Record<string, string>> = {},
): ClientHttp2Stream {
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': `${SERVICE}/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    },
    { endStream: false },
  )
  stream.on('error', () => {})
  return stream
}

/**
 * Waits until the server has handled all frames so far: its first answered ping says that they have come, the second that they
 * are handled.
 */
export async function handled(session: ClientHttp2Session): Promise<void> {
  for (let i = 0; i < 2; i++) {
    await new Promise<void>((resolve, reject) => {
      session.ping((error) => (error ? reject(error) : resolve()))
    })
  }
}

/** Waits for the status of a call. @returns `grpc-status`, or `closed` if the stream closes without it. */
export async function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  const status = Promise.withResolvers<unknown>()
  stream.on('response', (headers) => {
    if (headers['grpc-status'] !== undefined) status.resolve(headers['grpc-status'])
  })
  stream.on('trailers', (trailers) => status.resolve(trailers['grpc-status']))
  stream.on('close', () => status.resolve('closed'))
  stream.resume()
  return await status.promise
}
