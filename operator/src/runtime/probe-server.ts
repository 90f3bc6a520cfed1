import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createProbeServer, type Logger, listenAt } from '@tutti/chassis'
import { probeFailed } from './log-events.ts'

/** The HTTP answer of one path. */
export interface ProbeAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** Functions that make the answers, by path, `/livez` say. */
export type ProbeRoutes = Readonly<Record<string, () => ProbeAnswer | Promise<ProbeAnswer>>>

interface ProbeServerOptions {
  readonly host: string
  /** Port to listen on; 0 for any free one. */
  readonly port: number
  readonly routes: ProbeRoutes
  readonly log: Logger
}

export interface ProbeServer {
  readonly port: number
  close(): Promise<void>
}

/** Starts an HTTP server that answers GET on the given paths, for the kubelet and for Prometheus. The caller closes it. */
export async function startProbeServer(o: ProbeServerOptions): Promise<ProbeServer> {
  const server = createProbeServer((request, response) => {
    answer(o, request).then(
      (found) => send(response, found),
      (error: unknown) => {
        probeFailed(o.log, error)
        send(response, textAnswer(500, 'failed, see the log'))
      },
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(listenAt(o.host, o.port), resolve)
  })
  return { port: portOf(server), close: () => close(server) }
}

/** Builds an answer in plain text and ends it with a newline. */
export function textAnswer(status: number, text: string): ProbeAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` }
}

async function answer(o: ProbeServerOptions, request: IncomingMessage): Promise<ProbeAnswer> {
  const [path = ''] = (request.url ?? '').split('?')
  const route = Object.hasOwn(o.routes, path) ? o.routes[path] : undefined
  if (route === undefined)
    return textAnswer(404, `got ${path}, want ${Object.keys(o.routes).join(', ')}`)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return textAnswer(405, `got ${request.method}, want GET`)
  }
  return await route()
}

function send(response: ServerResponse, { status, contentType, body }: ProbeAnswer): void {
  response.writeHead(status, { 'content-type': contentType })
  response.end(body)
}

function portOf(server: Server): number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a listening TCP server has this kind of address
  return (server.address() as AddressInfo).port
}

async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
