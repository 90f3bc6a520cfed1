import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export type PodServer = Awaited<ReturnType<typeof startPodServer>>

export interface PodServerOptions {
  readonly ip?: string
  /** Port to listen on; default: any free one. */
  readonly port?: number
  /** Listener that answers all requests in place of the JSON of `answer`. */
  readonly listener?: RequestListener
}

/** Starts a substitute for the metrics listener of a pod. It answers 404 to paths without an answer. The caller closes it. */
export async function startPodServer(o: PodServerOptions = {}) {
  const asked = new Map<string, number>()
  const answers = new Map<string, unknown>()
  const ip = o.ip ?? '127.0.0.1'
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.set(path, (asked.get(path) ?? 0) + 1)
    const json = answers.get(path)
    if (o.listener !== undefined) o.listener(request, response)
    else if (json === undefined) response.writeHead(404).end()
    else response.writeHead(200).end(JSON.stringify(json))
  })
  const port = await listen(server, ip, o.port ?? 0)
  return {
    ip,
    port,
    /** Number of requests so far, by path. */
    asked: asked as ReadonlyMap<string, number>,
    /** Sets the JSON that is answered at a path. */
    answer: (path: string, json: unknown): void => void answers.set(path, json),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function listen(server: Server, ip: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, ip, () => resolve((server.address() as AddressInfo).port))
  })
}
