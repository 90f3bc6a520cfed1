import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'

/** What a test's server heard. */
export interface HeardRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** An HTTP server whose answers a test writes. */
export interface ArtifactServer {
  readonly origin: string
  readonly heard: HeardRequest[]
  /** Answers from now on; each of the list once, the last for ever. */
  script(...answers: readonly Answer[]): void
  close(): Promise<void>
}

/** Serves on a free port of this machine. */
export async function startArtifactServer(...answers: readonly Answer[]): Promise<ArtifactServer> {
  return await startServer(createServer(), 'http', answers)
}

export async function startTlsArtifactServer(
  tls: { readonly key: string; readonly cert: string },
  ...answers: readonly Answer[]
): Promise<ArtifactServer> {
  return await startServer(createTlsServer(tls), 'https', answers)
}

async function startServer(
  server: Server,
  protocol: string,
  answers: readonly Answer[],
): Promise<ArtifactServer> {
  const heard: HeardRequest[] = []
  let script = [...answers]
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    heard.push({ path: request.url ?? '', headers: request.headers })
    const answer = script.length > 1 ? script.shift() : script[0]
    answer?.(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    origin: `${protocol}://localhost:${address.port}`,
    heard,
    script: (...next) => {
      script = [...next]
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Answers with the bytes, or with the rest of them where a range is asked for and the tag fits. */
export function serveBytes(bytes: Uint8Array, etag?: string): Answer {
  return ({ headers }, response) => {
    const tag = etag === undefined ? {} : { etag }
    if (etag !== undefined && headers['if-none-match'] === etag) {
      response.writeHead(304, tag).end()
      return
    }
    const [, from] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? []
    const fits = headers['if-range'] === undefined || headers['if-range'] === etag
    if (from === undefined || !fits) {
      response.writeHead(200, { ...tag, 'content-length': bytes.byteLength }).end(bytes)
    } else if (Number(from) >= bytes.byteLength) {
      response.writeHead(416, { ...tag, 'content-range': `bytes */${bytes.byteLength}` }).end()
    } else {
      const rest = bytes.subarray(Number(from))
      const range = `bytes ${from}-${bytes.byteLength - 1}/${bytes.byteLength}`
      const length = { 'content-length': rest.byteLength, 'content-range': range }
      response.writeHead(206, { ...tag, ...length }).end(rest)
    }
  }
}

/**
 * As `serveBytes`, but the connection ends after so many bytes of the body.
 *
 * @param stored - resolves when the client has kept all bytes before this position of the file.
 */
export function cutAfter(
  count: number,
  bytes: Uint8Array,
  etag: string | undefined,
  stored: (position: number) => Promise<void>,
): Answer {
  return (request, response) => {
    const whole = response.end.bind(response)
    response.end = (body?: unknown) => {
      if (!(body instanceof Uint8Array)) return whole()
      const position = bytes.byteLength - body.byteLength + count
      response.write(body.subarray(0, count), () => {
        void stored(position).finally(() => response.socket?.destroy())
      })
      return response
    }
    serveBytes(bytes, etag)(request, response)
  }
}

export function answerStatus(status: number, headers: Record<string, string> = {}): Answer {
  return (_, response) => void response.writeHead(status, headers).end()
}
