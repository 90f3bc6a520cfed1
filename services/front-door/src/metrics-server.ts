import { createServer, type ServerResponse } from 'node:http'
import { type Logger, silentLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { listenOn } from './listen.ts'

/** What the endpoint prints; `ServerMetrics` is one. */
export interface MetricsSource {
  readonly contentType: string
  render(): Promise<string>
}

export interface MetricsServerOptions {
  readonly address: string
  /** 0 for any free port. Triton's default is 8002. */
  readonly port: number
  readonly metrics: MetricsSource
  readonly log?: Logger
}

export interface MetricsServer {
  readonly port: number
  close(): Promise<void>
}

/** Scrapers hold one connection each; a bound, so that the endpoint cannot take all descriptors of the process. */
const MAX_CONNECTIONS = 64
/** A scrape's request is one line and a few headers. */
const REQUEST_TIMEOUT_MS = 10_000
const LISTENER_FAILED = 'listener failed'

/**
 * Serves Prometheus text over HTTP, for as long as the process lives: also while it drains.
 * GET on any path answers with the metrics, as Triton 2.51 does (triton-semantics 9.19); other methods get 405.
 *
 * @throws ServeError SETTING_INVALID if the address cannot be listened on.
 */
export async function startMetricsServer(o: MetricsServerOptions): Promise<MetricsServer> {
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
    (request, response) => {
      if (request.method === 'GET') void reply(o.metrics, response)
      else send(response, 405, 'application/json', '{"error":"Method Not Allowed"}')
    },
  )
  server.maxConnections = MAX_CONNECTIONS
  const log = o.log ?? silentLogger
  const onError = (error: Error): void => log.error(LISTENER_FAILED, { error })
  const port = await listenOn(server, { ...o, onError })
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function reply(metrics: MetricsSource, response: ServerResponse): Promise<void> {
  try {
    send(response, 200, metrics.contentType, await metrics.render())
  } catch (error) {
    const { message } = ServeError.from(error)
    send(response, 500, 'application/json', JSON.stringify({ error: message }))
  }
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    ...(status === 405 ? { allow: 'GET' } : {}),
  })
  response.end(body)
}
