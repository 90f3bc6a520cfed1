import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export type PodServer = Awaited<ReturnType<typeof startPodServer>>

export interface PodServerOptions {
  readonly ip?: string
  /** Default: any free one. */
  readonly port?: number
  /** Instead of JSON. */
  readonly listener?: RequestListener
}

/** Stands for the metrics listener of a pod: answers on a loopback address of its own. */
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
    /** Requests so far, by path. */
    asked: asked as ReadonlyMap<string, number>,
    /** Answers the path with this JSON from now on. */
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
