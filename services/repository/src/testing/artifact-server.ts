import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'

export type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

export type ArtifactServer = Awaited<ReturnType<typeof startServer>>

/** Starts an HTTP server whose answers a test writes, on a free port of this machine. */
export async function startArtifactServer(...answers: readonly Answer[]): Promise<ArtifactServer> {
  return await startServer(createServer(), 'http', answers)
}

export async function startTlsArtifactServer(
  tls: { readonly key: string; readonly cert: string; readonly host?: string },
  ...answers: readonly Answer[]
): Promise<ArtifactServer> {
  return await startServer(createTlsServer(tls), 'https', answers, tls.host)
}

async function startServer(
  server: Server,
  protocol: string,
  answers: readonly Answer[],
  host?: string,
) {
  const heard: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = []
  let script = [...answers]
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    heard.push({ path: request.url ?? '', headers: request.headers })
    const answer = script.length > 1 ? script.shift() : script[0]
    void answer?.(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, host ?? '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    origin: `${protocol}://${host ?? 'localhost'}:${address.port}`,
    heard,
    /** Replaces the answers: each one of the list serves one request, and the last one serves all that follow. */
    script: (...next: readonly Answer[]): void => {
      script = [...next]
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Builds an answer of 200 with the bytes, or of 304 if the request names their tag. */
export function serveBytes(bytes: Uint8Array, etag?: string): Answer {
  return ({ headers }, response) => {
    const tag = etag === undefined ? {} : { etag }
    const isKnown = etag !== undefined && headers['if-none-match'] === etag
    if (isKnown) response.writeHead(304, tag).end()
    else response.writeHead(200, { ...tag, 'content-length': bytes.byteLength }).end(bytes)
  }
}

/**
 * Builds an answer that sends the first `count` bytes of a body, and then ends the connection.
 *
 * @param stored - resolves when the client has kept all bytes before this position of the file.
 */
export function cutAfter(
  count: number,
  bytes: Uint8Array,
  etag: string | undefined,
  stored: (position: number) => Promise<void>,
): Answer {
  return (_, response) => {
    const tag = etag === undefined ? {} : { etag }
    response.writeHead(200, { ...tag, 'content-length': bytes.byteLength })
    response.write(bytes.subarray(0, count), () => {
      void stored(count).finally(() => response.socket?.destroy())
    })
  }
}

export function answerStatus(status: number, headers: Record<string, string> = {}): Answer {
  return (_, response) => void response.writeHead(status, headers).end()
}
